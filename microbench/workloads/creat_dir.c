// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	if (path_in_shared_dir(w, path, "file"))
		return OP_FAILED;
	return file_ensure(w, path);
}

static inline enum outcome operation(struct worker *w)
{
	return file_ensure(w, path);
}
DEFINE_LOOPS(operation)

static const struct workload creat_dir = {
	.id = "creat_dir",
	.title = "Open a private file of a shared directory, which exists, with O_CREAT",
	.operation = "close(open(\"share/file.$ID\", O_RDWR|O_CREAT))",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_MEDIUM,
	.contention = "directory's i_rwsem (until Linux 6.12)",
	.setup_text = "share/file.$ID",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.apart = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(creat_dir);
