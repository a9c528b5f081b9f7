// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	if (path_make(w, path, "file"))
		return OP_FAILED;
	return file_ensure(w, path);
}

static inline enum outcome operation(struct worker *w)
{
	return file_ensure(w, path);
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_READ, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .named_only = true, .setup = set_up,		\
	LOOPS(operation)

static const struct workload creat_dir = {
	.id = "creat_dir",
	.title = "Open a private file of a shared directory, which exists, with O_CREAT",
	.operation = "close(open(\"share/file.$ID\", O_RDWR|O_CREAT))",
	.sharing = SHARING_MEDIUM,
	.contention = "directory's i_rwsem (until Linux 6.12)",
	.setup_text = "share/file.$ID",
	COMMON,
};

static const struct workload creat_private = {
	.id = "creat_private",
	.title = "Open a private file, which exists, with O_CREAT",
	.operation = "close(open(\"$ID/file\", O_RDWR|O_CREAT))",
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/file",
	COMMON,
};

static const struct workload creat_shared = {
	.id = "creat_shared",
	.title = "Open a shared file, which exists, with O_CREAT",
	.operation = "close(open(\"share/file\", O_RDWR|O_CREAT))",
	.sharing = SHARING_HIGH,
	.contention = "directory's i_rwsem (until Linux 6.12), dentry's d_lockref",
	.setup_text = "share/file",
	COMMON,
};
REGISTER_WORKLOADS(&creat_dir, &creat_private, &creat_shared);
