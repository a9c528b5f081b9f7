/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FSCALE_TESTS_CHECK_H
#define FSCALE_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                 \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__,       \
				#condition);                                             \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

#define CHECK_EQUAL(got, want)                                                           \
	do {                                                                             \
		long long got_ = (long long)(got), want_ = (long long)(want);            \
		if (got_ != want_) {                                                     \
			fprintf(stderr, "%s:%d: %s is %lld (%#llx), not %lld (%#llx)\n", \
				__FILE__, __LINE__, #got, got_, got_, want_, want_);     \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

#endif
