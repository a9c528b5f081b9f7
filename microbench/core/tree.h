/* SPDX-License-Identifier: GPL-2.0-only */
/* Paths five directories deep, and looking them up (MRP*). */
#ifndef FSCALE_TREE_H
#define FSCALE_TREE_H

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rng.h"
#include "workload.h"

#define TREE_DEPTH 5
#define TREE_FANOUT_BITS 3
#define TREE_PATHS (1u << (TREE_DEPTH * TREE_FANOUT_BITS))	/* 8^5 */

extern const struct option_desc lookup_options[];

struct lookup {
	bool stat;
	char path[32];
};

/*
 * Write path number `index` of the tree, "d/d/d/d/d", into a buffer that holds
 * such a path. The low bits are the last name, so neighbours share a directory.
 */
static inline void tree_path(char *path, uint64_t index)
{
	for (int level = TREE_DEPTH - 1; level >= 0; level--, index >>= TREE_FANOUT_BITS)
		path[2 * level] = (char)('0' + (index & ((1 << TREE_FANOUT_BITS) - 1)));
}

static inline void tree_path_init(char *path)
{
	strcpy(path, "0/0/0/0/0");
}

/* A path drawn uniformly: fifteen of the high bits, which are the best ones. */
static inline void tree_path_draw(char *path, struct rng *rng)
{
	tree_path(path, rng_next(rng) >> (64 - TREE_DEPTH * TREE_FANOUT_BITS));
}

/* Make the file `path` and the directories that lead to it. */
enum outcome tree_make_file(struct worker *w, const char *path);
/* This worker's share of the 8^5 files: every n-th directory of eight. */
enum outcome tree_make(struct worker *w);

/* Accesses a file as the option `access` of the workload requests. */
void lookup_init(const struct worker *w, struct lookup *lookup, const char *path);

/* One operation: open and close the file, or stat it. */
static inline enum outcome lookup(struct worker *w, const struct lookup *l)
{
	struct stat st;
	int fd;

	if (l->stat)
		return stat(l->path, &st) ? worker_fail(w, "stat", l->path) : OP_OK;
	fd = open(l->path, O_RDONLY | O_CLOEXEC);
	if (__builtin_expect(fd < 0, 0))
		return worker_fail(w, "open", l->path);
	if (__builtin_expect(close(fd), 0))
		return worker_fail(w, "close", l->path);
	return OP_OK;
}

#endif
