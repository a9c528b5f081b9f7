// SPDX-License-Identifier: GPL-2.0-only
#include "../core/attribute.h"
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	if (path_make(w, path, "file") || file_ensure(w, path))
		return OP_FAILED;
	return attribute_set(w, path);
}

static inline enum outcome operation(struct worker *w)
{
	return attribute_set(w, path);
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_WRITE, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .defers_work = true, .named_only = true,	\
	.setup = set_up, LOOPS(operation)

static const struct workload setxattr_private = {
	.id = "setxattr_private",
	.title = "Write an extended attribute of a private file",
	.operation = "setxattr(\"$ID/file\", \"user.fscale\", 16 bytes)",
	.sharing = SHARING_LOW,
	.contention = "allocations of the file system's attributes",
	.setup_text = "$ID/file with an attribute of 16 bytes",
	COMMON,
};

static const struct workload setxattr_shared = {
	.id = "setxattr_shared",
	.title = "Write an extended attribute of a shared file",
	.operation = "setxattr(\"share/file\", \"user.fscale\", 16 bytes)",
	.sharing = SHARING_HIGH,
	.contention = "file's i_rwsem",
	.setup_text = "share/file with an attribute of 16 bytes",
	COMMON,
};
REGISTER_WORKLOADS(&setxattr_private, &setxattr_shared);
