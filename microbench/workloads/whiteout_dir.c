// SPDX-License-Identifier: GPL-2.0-only
#include "../core/files.h"
#include "../core/overlay.h"

static PER_WORKER struct overlay overlay;
static PER_WORKER struct name file;

static enum outcome set_up(struct worker *w)
{
	struct name lower;

	if (overlay_shared(w, &overlay))
		return OP_FAILED;
	overlay_name(&overlay, &lower, "lower");
	overlay_name(&overlay, &file, "merged");
	return file_create(w, lower.path) ? OP_FAILED : overlay_mount(w, &overlay);
}

static inline enum outcome operation(struct worker *w)
{
	return file_unlink(w, file.path) ? OP_FAILED : file_create(w, file.path);
}
DEFINE_LOOPS(operation)

static const struct workload whiteout_dir = {
	.id = "whiteout_dir",
	.title = "Whiteout a file of the lower layer of a shared overlay, and create it anew",
	.operation = "unlink(\"share/merged/$ID.00000000\"); close(open(O_CREAT|O_EXCL))",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_MEDIUM,
	.contention = "i_rwsem of the merged directory, s_vfs_rename_mutex",
	.setup_text = "share/lower/$ID.00000000, empty; share/merged, an overlay with its directory as lower layer",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.puts_off = true,
	.defers_frees = true,
	.apart = true,
	.mounts = "overlay",
	.inherit = overlay_inherit,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(whiteout_dir);
