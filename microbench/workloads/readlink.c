// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	if (path_make(w, path, "link"))
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

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_READ, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .named_only = true, .setup = set_up,		\
	LOOPS(operation)

static const struct workload readlink_private = {
	.id = "readlink_private",
	.title = "Read a private symbolic link",
	.operation = "readlink(\"$ID/link\")",
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/link",
	COMMON,
};

static const struct workload readlink_shared = {
	.id = "readlink_shared",
	.title = "Read a shared symbolic link",
	.operation = "readlink(\"share/link\")",
	.sharing = SHARING_HIGH,
	.contention = "link's d_lockref",
	.setup_text = "share/link",
	COMMON,
};
REGISTER_WORKLOADS(&readlink_private, &readlink_shared);
