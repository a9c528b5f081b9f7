// SPDX-License-Identifier: GPL-2.0-only
#include "paths.h"

enum outcome path_private(struct worker *w, char path[PATH_SIZE], const char *name)
{
	snprintf(path, PATH_SIZE, "%u/%s", w->id, name);
	return dir_make_private(w);
}

enum outcome path_shared(struct worker *w, char path[PATH_SIZE], const char *name)
{
	snprintf(path, PATH_SIZE, "share/%s", name);
	return dir_make(w, "share");
}

enum outcome path_make(struct worker *w, char path[PATH_SIZE], const char *name)
{
	if (w->workload->sharing == SHARING_LOW)
		return path_private(w, path, name);
	if (w->workload->sharing == SHARING_HIGH)
		return path_shared(w, path, name);
	snprintf(path, PATH_SIZE, "share/%s.%u", name, w->id);
	return dir_make(w, "share");
}

enum outcome file_open(struct worker *w, const char *path, int *fd)
{
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	return *fd < 0 ? worker_fail(w, "open", path) : OP_OK;
}

enum outcome file_ensure(struct worker *w, const char *path)
{
	int fd;

	if (file_open(w, path, &fd))
		return OP_FAILED;
	return close(fd) ? worker_fail(w, "close", path) : OP_OK;
}
