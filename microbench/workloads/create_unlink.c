// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	return path_make(w, path, "file");
}

static inline enum outcome operation(struct worker *w)
{
	if (file_create(w, path))
		return OP_FAILED;
	return file_unlink(w, path);
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_WRITE, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .defers_work = true, .defers_frees = true,	\
	.named_only = true, .setup = set_up, LOOPS(operation)

static const struct workload create_unlink_dir = {
	.id = "create_unlink_dir",
	.title = "Create and unlink a file in a shared directory",
	.operation = "close(open(\"share/file.$ID\", O_CREAT|O_EXCL)); unlink",
	.sharing = SHARING_MEDIUM,
	.contention = "directory's i_rwsem",
	.setup_text = "share/, empty",
	COMMON,
};

static const struct workload create_unlink_private = {
	.id = "create_unlink_private",
	.title = "Create and unlink a file in a private directory",
	.operation = "close(open(\"$ID/file\", O_CREAT|O_EXCL)); unlink",
	.sharing = SHARING_LOW,
	.contention = "inode allocations and frees",
	.setup_text = "$ID/, empty",
	COMMON,
};
REGISTER_WORKLOADS(&create_unlink_dir, &create_unlink_private);
