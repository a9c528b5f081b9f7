// SPDX-License-Identifier: GPL-2.0-only
/*
 * Extended attributes: set, removed and read on both sides, and compared. Names and values are few
 * and short enough that all of them fit into the block that some file systems have for them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "model.h"

#define NAMES	6
#define VALUE	500	/* bytes, at most */

static const char *const names[NAMES] = {
	"user.model.a", "user.model.ab", "user.model.longer-than-the-others",
	"trusted.model.a", "trusted.model.b", "trusted.model.bb",
};

/* The object's path on one side; there are no such calls with a directory's descriptor. */
static const char *full(const struct process *p, int side, const char *path)
{
	static char text[2 * PATH_MAX];

	snprintf(text, sizeof(text), "%s/%s", p->options->dir[side], path);
	return text;
}

/* Whether both sides keep an attribute of that name, tried on a file that both have. */
bool xattrs_work(const struct process *p, const char *path, bool trusted)
{
	const char *name = names[trusted ? NAMES - 1 : 0];

	for (int side = TEST; side < SIDES; side++)
		if (lsetxattr(full(p, side, path), name, "x", 1, 0) < 0 ||
		    lremovexattr(full(p, side, path), name) < 0)
			return false;
	return true;
}

static void set(struct process *p, const char *path, const char *name)
{
	static const int kinds[] = { 0, 0, 0, XATTR_CREATE, XATTR_REPLACE };
	size_t size = rng_percent(p, 80) ? rng_below(p, 60) : rng_below(p, VALUE + 1);
	int flags = kinds[rng_below(p, 5)];
	int result[SIDES], error[SIDES];

	note(p, "lsetxattr(%s, %s, %zu bytes, %d)", path, name, size, flags);
	rng_fill(p, p->buffer[TEST], size);
	for (int side = TEST; side < SIDES; side++) {
		result[side] = lsetxattr(full(p, side, path), name, p->buffer[TEST], size, flags);
		error[side] = errno;
		if (side == TEST && no_space(p, result[TEST], error[TEST]))
			return;
		if (side == TEST && result[TEST] == 0 && fault_due(p, "lost-xattr"))
			lremovexattr(full(p, side, path), name);
	}
	same_result(p, "lsetxattr", result[TEST], error[TEST], result[REFERENCE],
		    error[REFERENCE]);
}

static void drop(struct process *p, const char *path, const char *name)
{
	int result[SIDES], error[SIDES];

	note(p, "lremovexattr(%s, %s)", path, name);
	for (int side = TEST; side < SIDES; side++) {
		result[side] = lremovexattr(full(p, side, path), name);
		error[side] = errno;
	}
	same_result(p, "lremovexattr", result[TEST], error[TEST], result[REFERENCE],
		    error[REFERENCE]);
}

static void compare_value(struct process *p, const char *path, const char *name)
{
	static char value[SIDES][VALUE + 1];
	ssize_t size[SIDES];
	int error[SIDES];

	for (int side = TEST; side < SIDES; side++) {
		size[side] = lgetxattr(full(p, side, path), name, value[side], VALUE);
		error[side] = errno;
	}
	if (same_result(p, "lgetxattr", size[TEST], error[TEST], size[REFERENCE],
			error[REFERENCE]) && size[TEST] > 0 &&
	    memcmp(value[TEST], value[REFERENCE], (size_t)size[TEST]))
		mismatch(p, "%s: the value of %s differs", path, name);
}

/* Which of `names` are listed, as bits; -1: they cannot be. */
static int listed(struct process *p, int side, const char *path)
{
	static char list[65536];
	ssize_t size = llistxattr(full(p, side, path), list, sizeof(list));
	int found = 0;

	if (size < 0)
		return -1;
	for (const char *name = list; name < list + size; name += strlen(name) + 1) {
		for (int n = 0; n < NAMES; n++) {
			if (strcmp(name, names[n]))
				continue;
			if (found & 1 << n)
				mismatch(p, "%s: %s is listed twice", path, name);
			found |= 1 << n;
		}
	}
	return found;
}

/* Compare all attributes of an object; those of others, as security modules', are left alone. */
void compare_xattrs(struct process *p, const char *path)
{
	int found[SIDES], error[SIDES];

	for (int side = TEST; side < SIDES; side++) {
		errno = 0;
		found[side] = listed(p, side, path);
		error[side] = errno;
	}
	/* Without attributes of its own a side may say that it has none at all. */
	if (found[REFERENCE] <= 0 && found[TEST] <= 0)
		return;
	if (!same_result(p, "the set of llistxattr", found[TEST], error[TEST], found[REFERENCE],
			 error[REFERENCE]))
		return;
	for (int n = 0; n < NAMES && !p->failed; n++)
		if (found[TEST] & 1 << n)
			compare_value(p, path, names[n]);
}

void op_xattr(struct process *p)
{
	uint32_t first = p->can->user_xattr ? 0 : NAMES / 2;
	uint32_t end = p->can->trusted_xattr ? NAMES : NAMES / 2;
	char path[PATH_MAX];
	const char *name;

	path_any(p, path);
	if (first >= end)
		return;
	name = names[first + rng_below(p, end - first)];
	switch (rng_below(p, 5)) {
	case 0:
		note(p, "lgetxattr(%s, %s)", path, name);
		compare_value(p, path, name);
		return;
	case 1:
		drop(p, path, name);
		break;
	default:
		set(p, path, name);
	}
	compare_stat(p, path);
	if (!p->failed)
		compare_xattrs(p, path);
}
