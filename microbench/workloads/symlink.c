// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	return path_make(w, path, "link");
}

static inline enum outcome operation(struct worker *w)
{
	if (symlink("target", path))
		return worker_fail(w, "symlink", path);
	return file_unlink(w, path);
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_WRITE, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .defers_work = true, .defers_frees = true,	\
	.named_only = true, .setup = set_up, LOOPS(operation)

static const struct workload symlink_dir = {
	.id = "symlink_dir",
	.title = "Make and unlink a symbolic link in a shared directory",
	.operation = "symlink(\"target\", \"share/link.$ID\"); unlink",
	.sharing = SHARING_MEDIUM,
	.contention = "directory's i_rwsem",
	.setup_text = "share/, empty",
	COMMON,
};

static const struct workload symlink_private = {
	.id = "symlink_private",
	.title = "Make and unlink a symbolic link in a private directory",
	.operation = "symlink(\"target\", \"$ID/link\"); unlink",
	.sharing = SHARING_LOW,
	.contention = "inode allocations and frees",
	.setup_text = "$ID/, empty",
	COMMON,
};
REGISTER_WORKLOADS(&symlink_dir, &symlink_private);
