// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	if (path_shared(w, path, "link"))
		return OP_FAILED;
	if (symlink("target", path) && errno != EEXIST)
		return worker_fail(w, "symlink", path);
	return OP_OK;
}

static inline enum outcome operation(struct worker *w)
{
	char target[16];

	return readlink(path, target, sizeof(target)) < 0 ? worker_fail(w, "readlink", path) : OP_OK;
}
DEFINE_LOOPS(operation)

static const struct workload readlink_shared = {
	.id = "readlink_shared",
	.title = "Read a shared symbolic link",
	.operation = "readlink(\"share/link\")",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_HIGH,
	.contention = "link's d_lockref",
	.setup_text = "share/link",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.apart = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(readlink_shared);
