/* SPDX-License-Identifier: GPL-2.0-only */
/* An extended attribute of a file, in the name space of users. */
#ifndef FSCALE_ATTRIBUTE_H
#define FSCALE_ATTRIBUTE_H

#include <errno.h>
#include <sys/xattr.h>

#include "workload.h"

#define ATTRIBUTE "user.fscale"
#define ATTRIBUTE_SIZE 16	/* bytes */

/* A file system that has no such attributes skips the run. */
static inline enum outcome attribute_set(struct worker *w, const char *path)
{
	static const char value[ATTRIBUTE_SIZE] = "0123456789abcde";

	if (__builtin_expect(!setxattr(path, ATTRIBUTE, value, sizeof(value), 0), 1))
		return OP_OK;
	return errno == EOPNOTSUPP ? worker_unsupported(w, "setxattr", path) :
				     worker_fail(w, "setxattr", path);
}

static inline enum outcome attribute_get(struct worker *w, const char *path)
{
	char value[ATTRIBUTE_SIZE];
	long n = getxattr(path, ATTRIBUTE, value, sizeof(value));

	if (__builtin_expect(n != ATTRIBUTE_SIZE, 0))
		return worker_short(w, "getxattr", path, n, ATTRIBUTE_SIZE);
	return OP_OK;
}

#endif
