/* SPDX-License-Identifier: GPL-2.0-only */
/* An extended attribute of a file, in the name space of users. */
#ifndef FSCALE_ATTRIBUTE_H
#define FSCALE_ATTRIBUTE_H

#include <errno.h>
#include <sys/xattr.h>

#include "workload.h"

#define ATTRIBUTE "user.fscale"
#define ATTRIBUTE_SIZE 16	/* bytes */

static inline enum outcome attribute_set(struct worker *w, const char *path)
{
	static const char value[ATTRIBUTE_SIZE] = "0123456789abcde";

	return setxattr(path, ATTRIBUTE, value, sizeof(value), 0) ? worker_fail(w, "setxattr", path) :
								     OP_OK;
}

static inline enum outcome attribute_get(struct worker *w, const char *path)
{
	char value[ATTRIBUTE_SIZE];
	long n = getxattr(path, ATTRIBUTE, value, sizeof(value));

	if (__builtin_expect(n != ATTRIBUTE_SIZE, 0))
		return worker_short(w, "getxattr", path, n, ATTRIBUTE_SIZE);
	return OP_OK;
}

/* In a set-up: give the file its attribute; a file system that has none skips the run. */
static inline enum outcome attribute_try(struct worker *w, const char *path)
{
	static const char value[ATTRIBUTE_SIZE];

	if (setxattr(path, ATTRIBUTE, value, sizeof(value), 0) && errno == EOPNOTSUPP)
		return worker_unsupported(w, "setxattr", path);
	return attribute_set(w, path);
}

#endif
