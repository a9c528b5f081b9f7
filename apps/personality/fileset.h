/* SPDX-License-Identifier: GPL-2.0-only */
/* A set of files in a tree of directories, of which some exist: Filebench's notion. */
#ifndef APPS_FILESET_H
#define APPS_FILESET_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "../common/util.h"

enum file_state { FILE_ABSENT, FILE_IDLE, FILE_BUSY };

struct fileset {
	unsigned int count, width;
	atomic_uchar *state; /* in shared memory, for sets that several workers use */
};

/* Lay out a set of `count` files in shared memory. */
void fileset_init(struct fileset *set, unsigned int count, unsigned int width);

/* The path of file `index` below the set's root: nested directories of at most `width` entries. */
void fileset_path(const struct fileset *set, unsigned int index, char *path, size_t size);

/* Make all directories below `root`; -1 with errno and the path that failed. */
int fileset_directories(const struct fileset *set, int root, char *path, size_t size);

/*
 * Draw a file that is in state `from` and make it busy. Falls back to a search when drawing fails
 * often. Returns -1 when there is none.
 */
long fileset_take(struct fileset *set, enum file_state from, uint64_t *random);

/* Give a file back. */
void fileset_put(struct fileset *set, long index, enum file_state to);

#endif
