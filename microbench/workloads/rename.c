// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char paths[2][PATH_SIZE];
static PER_WORKER unsigned int now;		/* under which of the two names the file is */

static enum outcome set_up(struct worker *w)
{
	if (path_make(w, paths[0], "file") || path_make(w, paths[1], "other"))
		return OP_FAILED;
	return file_ensure(w, paths[0]);
}

static inline enum outcome operation(struct worker *w)
{
	if (file_rename(w, paths[now], paths[!now]))
		return OP_FAILED;
	now = !now;
	return OP_OK;
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_WRITE, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .defers_work = true, .named_only = true,	\
	.setup = set_up, LOOPS(operation)

static const struct workload rename_dir = {
	.id = "rename_dir",
	.title = "Rename a private file within a shared directory, there and back",
	.operation = "rename(\"share/file.$ID\", \"share/other.$ID\"), or back",
	.sharing = SHARING_MEDIUM,
	.contention = "directory's i_rwsem, rename_lock",
	.setup_text = "share/file.$ID",
	COMMON,
};

static const struct workload rename_private = {
	.id = "rename_private",
	.title = "Rename a private file within a private directory, there and back",
	.operation = "rename(\"$ID/file\", \"$ID/other\"), or back",
	.sharing = SHARING_LOW,
	.contention = "rename_lock",
	.setup_text = "$ID/file",
	COMMON,
};
REGISTER_WORKLOADS(&rename_dir, &rename_private);
