// SPDX-License-Identifier: GPL-2.0-only
#include "../core/copyup.h"

static PER_WORKER struct copyup files;

static enum outcome set_up(struct worker *w)
{
	if (overlay_shared(w, &files.overlay))
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

static const struct workload copy_up_dir = {
	.id = "copy_up_dir",
	.title = "Open a file of the lower layer of a shared overlay for writing",
	.operation = "close(open(\"share/merged/$ID.$N\", O_WRONLY))",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_MEDIUM,
	.contention = "i_rwsem of the upper directory, file system's commits",
	.setup_text = "share/lower/ with a stock of files of 4 KiB; share/merged, an overlay with it as lower layer",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.puts_off = true,
	.apart = true,
	.mounts = "overlay",
	.stock = &stock_of_lower_files,
	.inherit = overlay_inherit,
	.setup = set_up,
	.fill = fill,
	LOOPS(operation),
};
REGISTER_WORKLOAD(copy_up_dir);
