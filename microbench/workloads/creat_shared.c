// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	if (path_shared(w, path, "file"))
		return OP_FAILED;
	return file_ensure(w, path);
}

static inline enum outcome operation(struct worker *w)
{
	return file_ensure(w, path);
}
DEFINE_LOOPS(operation)

static const struct workload creat_shared = {
	.id = "creat_shared",
	.title = "Open a shared file, which exists, with O_CREAT",
	.operation = "close(open(\"share/file\", O_RDWR|O_CREAT))",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_HIGH,
	.contention = "directory's i_rwsem (until Linux 6.12), dentry's d_lockref",
	.setup_text = "share/file",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.apart = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(creat_shared);
