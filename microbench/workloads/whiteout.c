// SPDX-License-Identifier: GPL-2.0-only
#include "../core/files.h"
#include "../core/overlay.h"

static PER_WORKER struct overlay overlay;
static PER_WORKER struct name file;

static enum outcome set_up(struct worker *w)
{
	struct name lower;

	if (overlay_init(w, &overlay))
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

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_WRITE, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .defers_work = true, .defers_frees = true,	\
	.named_only = true, .mounts = "overlay", .setup = set_up, LOOPS(operation)

static const struct workload whiteout_dir = {
	.id = "whiteout_dir",
	.title = "Whiteout a file of the lower layer of a shared overlay, and create it anew",
	.operation = "unlink(\"share/merged/$ID.00000000\"); close(open(O_CREAT|O_EXCL))",
	.sharing = SHARING_MEDIUM,
	.contention = "i_rwsem of the merged directory, s_vfs_rename_mutex",
	.setup_text = "share/lower/$ID.00000000, empty; share/merged, an overlay with its directory as lower layer",
	.inherit = overlay_inherit,
	COMMON,
};

static const struct workload whiteout_private = {
	.id = "whiteout_private",
	.title = "Whiteout a file of the lower layer of a private overlay, and create it anew",
	.operation = "unlink(\"$ID/merged/00000000\"); close(open(O_CREAT|O_EXCL))",
	.sharing = SHARING_LOW,
	.contention = "s_vfs_rename_mutex",
	.setup_text = "$ID/lower/00000000, empty; $ID/merged, an overlay with its directory as lower layer",
	COMMON,
};
REGISTER_WORKLOADS(&whiteout_dir, &whiteout_private);
