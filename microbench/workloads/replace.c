// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE], fresh[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	if (path_make(w, path, "file") || path_make(w, fresh, "new"))
		return OP_FAILED;
	return file_ensure(w, path);
}

static inline enum outcome operation(struct worker *w)
{
	if (file_create(w, fresh))
		return OP_FAILED;
	return file_rename(w, fresh, path);
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_WRITE, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .defers_work = true, .defers_frees = true,	\
	.named_only = true, .setup = set_up, LOOPS(operation)

static const struct workload replace_dir = {
	.id = "replace_dir",
	.title = "Create a file in a shared directory and rename it over another",
	.operation = "close(open(\"share/new.$ID\", O_CREAT|O_EXCL)); rename(it, \"share/file.$ID\")",
	.sharing = SHARING_MEDIUM,
	.contention = "directory's i_rwsem, rename_lock",
	.setup_text = "share/file.$ID",
	COMMON,
};

static const struct workload replace_private = {
	.id = "replace_private",
	.title = "Create a file in a private directory and rename it over another",
	.operation = "close(open(\"$ID/new\", O_CREAT|O_EXCL)); rename(it, \"$ID/file\")",
	.sharing = SHARING_LOW,
	.contention = "rename_lock, inode allocations and frees",
	.setup_text = "$ID/file",
	COMMON,
};
REGISTER_WORKLOADS(&replace_dir, &replace_private);
