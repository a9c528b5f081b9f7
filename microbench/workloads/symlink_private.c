// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	return path_private(w, path, "link");
}

static inline enum outcome operation(struct worker *w)
{
	if (symlink("target", path))
		return worker_fail(w, "symlink", path);
	return file_unlink(w, path);
}
DEFINE_LOOPS(operation)

static const struct workload symlink_private = {
	.id = "symlink_private",
	.title = "Make and unlink a symbolic link in a private directory",
	.operation = "symlink(\"target\", \"$ID/link\"); unlink",
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
REGISTER_WORKLOAD(symlink_private);
