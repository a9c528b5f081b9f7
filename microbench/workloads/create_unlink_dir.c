// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	return path_in_shared_dir(w, path, "file");
}

static inline enum outcome operation(struct worker *w)
{
	if (file_create(w, path))
		return OP_FAILED;
	return file_unlink(w, path);
}
DEFINE_LOOPS(operation)

static const struct workload create_unlink_dir = {
	.id = "create_unlink_dir",
	.title = "Create and unlink a file in a shared directory",
	.operation = "close(open(\"share/file.$ID\", O_CREAT|O_EXCL)); unlink",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_MEDIUM,
	.contention = "directory's i_rwsem",
	.setup_text = "share/, empty",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.puts_off = true,
	.defers_frees = true,
	.apart = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(create_unlink_dir);
