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
	return attribute_get(w, path);
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_READ, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .named_only = true, .setup = set_up,		\
	LOOPS(operation)

static const struct workload getxattr_private = {
	.id = "getxattr_private",
	.title = "Read an extended attribute of a private file",
	.operation = "getxattr(\"$ID/file\", \"user.fscale\")",
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/file with an attribute of 16 bytes",
	COMMON,
};

static const struct workload getxattr_shared = {
	.id = "getxattr_shared",
	.title = "Read an extended attribute of a shared file",
	.operation = "getxattr(\"share/file\", \"user.fscale\")",
	.sharing = SHARING_HIGH,
	.contention = "lock of the file's attributes, dentry's d_lockref",
	.setup_text = "share/file with an attribute of 16 bytes",
	COMMON,
};
REGISTER_WORKLOADS(&getxattr_private, &getxattr_shared);
