/* SPDX-License-Identifier: GPL-2.0-only */
/* Directories of a fixed number of files, and enumerating them (MRD*). */
#ifndef FSCALE_ENTRIES_H
#define FSCALE_ENTRIES_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "names.h"
#include "workload.h"

extern const struct option_desc entries_options[];

struct entries {
	DIR *stream;
	char path[16];
};

/* Make the directory `path` and files first, first + step, ... of the `entries` option in it. */
enum outcome entries_make(struct worker *w, const char *path, unsigned int first, unsigned int step);
enum outcome entries_open(struct worker *w, struct entries *e, const char *path);

/*
 * One operation: one entry returned by readdir(3), "." and ".." among them.
 * The end of the directory is not an entry: it rewinds and reads on.
 */
static inline enum outcome entry_read(struct worker *w, struct entries *e)
{
	errno = 0;
	if (__builtin_expect(readdir(e->stream) != NULL, 1))
		return OP_OK;
	if (errno)
		return worker_fail(w, "readdir", e->path);
	rewinddir(e->stream);
	if (readdir(e->stream))
		return OP_OK;
	errno = errno ? errno : ENOENT;
	return worker_fail(w, "readdir", e->path);
}

/* The background writer: renames the entries of some directories there and back, one after the other. */
struct renamer {
	struct name from, to;
	unsigned int dir, dirs;		/* the directories 0 .. dirs - 1; 0: share */
	uint64_t number, count;
	bool back;
};

void renamer_init(const struct worker *w, struct renamer *r, unsigned int dirs);
enum outcome renamer_next(struct worker *w, struct renamer *r);

#endif
