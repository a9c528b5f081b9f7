// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	return path_make(w, path, "dir");
}

static inline enum outcome operation(struct worker *w)
{
	if (mkdir(path, 0755))
		return worker_fail(w, "mkdir", path);
	return rmdir(path) ? worker_fail(w, "rmdir", path) : OP_OK;
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_WRITE, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .defers_work = true, .defers_frees = true,	\
	.named_only = true, .setup = set_up, LOOPS(operation)

static const struct workload mkdir_dir = {
	.id = "mkdir_dir",
	.title = "Make and remove a directory in a shared directory",
	.operation = "mkdir(\"share/dir.$ID\"); rmdir",
	.sharing = SHARING_MEDIUM,
	.contention = "parent's i_rwsem and link count",
	.setup_text = "share/, empty",
	COMMON,
};

static const struct workload mkdir_private = {
	.id = "mkdir_private",
	.title = "Make and remove a directory in a private directory",
	.operation = "mkdir(\"$ID/dir\"); rmdir",
	.sharing = SHARING_LOW,
	.contention = "inode allocations and frees",
	.setup_text = "$ID/, empty",
	COMMON,
};
REGISTER_WORKLOADS(&mkdir_dir, &mkdir_private);
