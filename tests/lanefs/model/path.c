// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of a process: few, so that operations meet existing objects of every kind.
 *
 *   p3/X[/X[/X]]	private tree, X one of NAMES
 *   p3/big/nNNNN	one large private directory
 *   s1/p3_X[/X]	in a directory that all processes share
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model.h"

#define NAMES		7
#define BIG_NAMES	4000

static void make(struct process *p, const char *path)
{
	for (int side = TEST; side < SIDES; side++)
		if (mkdirat(p->root[side], path, 0755) < 0 && errno != EEXIST)
			fatal("mkdir %s/%s: %s", p->options->dir[side], path, strerror(errno));
}

void path_setup(struct process *p)
{
	char path[64];

	for (int n = 0; n < SHARED_DIRS; n++) {
		snprintf(path, sizeof(path), "s%d", n);
		make(p, path);
	}
	for (int n = 0; n < p->options->processes; n++) {
		snprintf(path, sizeof(path), "p%d", n);
		make(p, path);
		snprintf(path, sizeof(path), "p%d/big", n);
		make(p, path);
	}
}

/* One of NAMES names of lengths from 1 to 255; now and then one that is too long. */
static void append_name(struct process *p, char *path, size_t room)
{
	static const size_t lengths[NAMES] = { 1, 2, 5, 8, 31, 120, 255 };
	uint32_t n = rng_below(p, NAMES);
	size_t length = rng_below(p, 500) ? lengths[n] : 256;
	size_t used = strlen(path);

	/* Within a shared directory the prefix counts as part of the name. */
	const char *slash = strrchr(path, '/');
	size_t prefix = slash ? strlen(slash + 1) : used;

	if (length > prefix)
		length -= prefix;
	else
		length = 1;
	if (used + length + 2 > room)
		length = 1;
	memset(path + used, (int)('a' + n), length);
	path[used + length] = '\0';
}

void path_any(struct process *p, char path[PATH_MAX])
{
	uint32_t kind = rng_below(p, 100);
	uint32_t depth;

	if (kind < 12) {
		snprintf(path, PATH_MAX, "p%d/big/n%u", p->number, rng_below(p, BIG_NAMES));
		return;
	}
	if (kind < 40) {
		snprintf(path, PATH_MAX, "s%u/p%d_", rng_below(p, SHARED_DIRS), p->number);
		depth = 1 + rng_percent(p, 30);
	} else {
		snprintf(path, PATH_MAX, "p%d/", p->number);
		depth = 1 + rng_below(p, 3);
	}
	for (uint32_t n = 0; n < depth; n++) {
		if (n)
			strcat(path, "/");
		append_name(p, path, PATH_MAX - 300);
	}
	if (!rng_below(p, 200))
		strcat(path, "/");
}
