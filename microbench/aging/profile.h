/* SPDX-License-Identifier: GPL-2.0-only */
/* What a file system is aged by; fscale/model/aging.py explains each value. */
#ifndef FSCALE_AGING_PROFILE_H
#define FSCALE_AGING_PROFILE_H

#include <stdint.h>

#define MAX_ROWS 64

/* Of a table of sizes: bytes; of a table of levels: directories. */
struct row {
	uint64_t value, weight;
};

struct table {
	struct row rows[MAX_ROWS];
	unsigned int count;
	uint64_t weight;	/* of all rows */
};

struct profile {
	uint64_t seed, append;
	double utilisation, churn, lifetime_sigma;
	unsigned int streams;
	struct table sizes, levels;
};

#endif
