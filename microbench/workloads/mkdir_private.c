// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	return path_private(w, path, "dir");
}

static inline enum outcome operation(struct worker *w)
{
	if (mkdir(path, 0755))
		return worker_fail(w, "mkdir", path);
	return rmdir(path) ? worker_fail(w, "rmdir", path) : OP_OK;
}
DEFINE_LOOPS(operation)

static const struct workload mkdir_private = {
	.id = "mkdir_private",
	.title = "Make and remove a directory in a private directory",
	.operation = "mkdir(\"$ID/dir\"); rmdir",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "inode allocations and frees",
	.setup_text = "$ID/, empty",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.puts_off = true,
	.defers_frees = true,
	.apart = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(mkdir_private);
