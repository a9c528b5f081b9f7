// SPDX-License-Identifier: GPL-2.0-only
#include <sys/stat.h>

#include "../core/paths.h"

/* Too long for the part of the name that lies in the first cache line of a dentry. */
#define NAME "file-of-all-workers"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	return path_shared(w, path, NAME) ? OP_FAILED : file_ensure(w, path);
}

static inline enum outcome operation(struct worker *w)
{
	struct stat st;

	return stat(path, &st) ? worker_fail(w, "stat", path) : OP_OK;
}
DEFINE_LOOPS(operation)

static const struct workload stat_shared = {
	.id = "stat_shared",
	.title = "Stat a shared file by its path",
	.operation = "stat(\"share/" NAME "\")",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_HIGH,
	.contention = "dentry's d_lockref (until Linux 6.11 beside the end of its name)",
	.setup_text = "share/" NAME,
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.named_only = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&stat_shared);
