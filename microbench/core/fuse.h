/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A FUSE file system that answers at once and lets the kernel keep nothing. Each worker has a
 * process that answers requests, on the worker's CPU; its CPU time is not the worker's. It answers
 * whatever comes next in the queue of its file system, also of other workers.
 */
#ifndef FSCALE_FUSE_H
#define FSCALE_FUSE_H

#include <sys/stat.h>

#include "namespace.h"
#include "paths.h"

struct fuse_file {
	int fd;
	off_t size;		/* as last answered */
	char path[PATH_SIZE];
};

/*
 * Enter the namespace and open the worker's file, of a file system of its own ("$ID/mnt/$ID") if the
 * workload's sharing is low, else of the one of all ("share/mnt/$ID"). The run is skipped if the
 * kernel has no FUSE or denies it.
 */
enum outcome fuse_open(struct worker *w, struct fuse_file *file);

/* Makes the file system of all, for `inherit` of a workload. */
const char *fuse_inherit(const char *dir);

/* One request. No two answers are the same, so that one from a cache would be noticed. */
static inline enum outcome fuse_getattr(struct worker *w, struct fuse_file *file)
{
	struct stat st;

	if (fstat(file->fd, &st))
		return worker_fail(w, "fstat", file->path);
	if (__builtin_expect(st.st_size == file->size, 0)) {
		errno = ESTALE;
		return worker_fail(w, "fstat", file->path);
	}
	file->size = st.st_size;
	return OP_OK;
}

#endif
