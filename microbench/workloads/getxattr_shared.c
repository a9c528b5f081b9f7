// SPDX-License-Identifier: GPL-2.0-only
#include "../core/attribute.h"
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	if (path_shared(w, path, "file") || file_ensure(w, path))
		return OP_FAILED;
	return attribute_set(w, path);
}

static inline enum outcome operation(struct worker *w)
{
	return attribute_get(w, path);
}
DEFINE_LOOPS(operation)

static const struct workload getxattr_shared = {
	.id = "getxattr_shared",
	.title = "Read an extended attribute of a shared file",
	.operation = "getxattr(\"share/file\", \"user.fscale\")",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_HIGH,
	.contention = "lock of the file's attributes, dentry's d_lockref",
	.setup_text = "share/file with an attribute of 16 bytes",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.apart = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(getxattr_shared);
