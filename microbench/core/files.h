/* SPDX-License-Identifier: GPL-2.0-only */
/* Directories and empty files, as set-ups and operations make them. */
#ifndef FSCALE_FILES_H
#define FSCALE_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workload.h"

/* Another worker may have made it first. */
static inline enum outcome dir_make(struct worker *w, const char *path)
{
	if (mkdir(path, 0755) && errno != EEXIST)
		return worker_fail(w, "mkdir", path);
	return OP_OK;
}

/* The private directory, $ID. */
static inline enum outcome dir_make_private(struct worker *w)
{
	char path[16];

	snprintf(path, sizeof(path), "%u", w->id);
	return dir_make(w, path);
}

static inline enum outcome file_create(struct worker *w, const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	if (fd < 0)
		return worker_fail(w, "open", path);
	if (close(fd))
		return worker_fail(w, "close", path);
	return OP_OK;
}

static inline enum outcome file_unlink(struct worker *w, const char *path)
{
	return unlink(path) ? worker_fail(w, "unlink", path) : OP_OK;
}

static inline enum outcome file_rename(struct worker *w, const char *from, const char *to)
{
	return rename(from, to) ? worker_fail(w, "rename", from) : OP_OK;
}

#endif
