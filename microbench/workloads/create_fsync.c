// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	return path_make(w, path, "file");
}

static inline enum outcome operation(struct worker *w)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	if (fd < 0)
		return worker_fail(w, "open", path);
	if (fsync(fd))
		return worker_fail(w, "fsync", path);
	if (close(fd))
		return worker_fail(w, "close", path);
	return file_unlink(w, path);
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_WRITE, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .defers_work = true, .defers_frees = true,	\
	.named_only = true, .setup = set_up, LOOPS(operation)

static const struct workload create_fsync_dir = {
	.id = "create_fsync_dir",
	.title = "Create a file in a shared directory, sync and unlink it",
	.operation = "fsync(open(\"share/file.$ID\", O_CREAT|O_EXCL)); close; unlink",
	.sharing = SHARING_MEDIUM,
	.contention = "journal's commit, directory's i_rwsem",
	.setup_text = "share/, empty",
	COMMON,
};

static const struct workload create_fsync_private = {
	.id = "create_fsync_private",
	.title = "Create a file in a private directory, sync and unlink it",
	.operation = "fsync(open(\"$ID/file\", O_CREAT|O_EXCL)); close; unlink",
	.sharing = SHARING_LOW,
	.contention = "journal's commit",
	.setup_text = "$ID/, empty",
	COMMON,
};
REGISTER_WORKLOADS(&create_fsync_dir, &create_fsync_private);
