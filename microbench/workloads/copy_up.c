// SPDX-License-Identifier: GPL-2.0-only
#include "../core/copyup.h"

static PER_WORKER struct copyup files;

static enum outcome set_up(struct worker *w)
{
	if (overlay_init(w, &files.overlay))
		return OP_FAILED;
	copyup_init(&files);
	return OP_OK;
}

static enum outcome fill(struct worker *w, uint64_t stock)
{
	return copyup_fill(w, &files, stock);
}

static inline enum outcome operation(struct worker *w)
{
	return copyup_next(w, &files);
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_WRITE, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .defers_work = true, .named_only = true,	\
	.mounts = "overlay", .stock = &stock_of_lower_files, .setup = set_up,		\
	.fill = fill, LOOPS(operation)

static const struct workload copy_up_dir = {
	.id = "copy_up_dir",
	.title = "Open a file of the lower layer of a shared overlay for writing",
	.operation = "close(open(\"share/merged/$ID.$N\", O_WRONLY))",
	.sharing = SHARING_MEDIUM,
	.contention = "i_rwsem of the upper directory, file system's commits",
	.setup_text = "share/lower/ with a stock of files of 4 KiB; share/merged, an overlay with it as lower layer",
	.inherit = overlay_inherit,
	COMMON,
};

static const struct workload copy_up_private = {
	.id = "copy_up_private",
	.title = "Open a file of the lower layer of a private overlay for writing",
	.operation = "close(open(\"$ID/merged/$N\", O_WRONLY))",
	.sharing = SHARING_LOW,
	.contention = "file system's allocations and commits; on tmpfs, the hash of inodes that have file handles",
	.setup_text = "$ID/lower/ with a stock of files of 4 KiB; $ID/merged, an overlay with it as lower layer",
	COMMON,
};
REGISTER_WORKLOADS(&copy_up_dir, &copy_up_private);
