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
	return attribute_set(w, path);
}
DEFINE_LOOPS(operation)

static const struct workload setxattr_shared = {
	.id = "setxattr_shared",
	.title = "Write an extended attribute of a shared file",
	.operation = "setxattr(\"share/file\", \"user.fscale\", 16 bytes)",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_HIGH,
	.contention = "file's i_rwsem",
	.setup_text = "share/file with an attribute of 16 bytes",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.puts_off = true,
	.apart = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(setxattr_shared);
