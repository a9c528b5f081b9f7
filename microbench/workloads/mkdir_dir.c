// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	return path_in_shared_dir(w, path, "dir");
}

static inline enum outcome operation(struct worker *w)
{
	if (mkdir(path, 0755))
		return worker_fail(w, "mkdir", path);
	return rmdir(path) ? worker_fail(w, "rmdir", path) : OP_OK;
}
DEFINE_LOOPS(operation)

static const struct workload mkdir_dir = {
	.id = "mkdir_dir",
	.title = "Make and remove a directory in a shared directory",
	.operation = "mkdir(\"share/dir.$ID\"); rmdir",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_MEDIUM,
	.contention = "parent's i_rwsem and link count",
	.setup_text = "share/, empty",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.puts_off = true,
	.defers_frees = true,
	.apart = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(mkdir_dir);
