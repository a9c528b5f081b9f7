// SPDX-License-Identifier: GPL-2.0-only
#include "../core/fuse.h"

static PER_WORKER struct fuse_file file;

static enum outcome set_up(struct worker *w)
{
	return fuse_shared(w, &file);
}

static inline enum outcome operation(struct worker *w)
{
	return fuse_getattr(w, &file);
}
DEFINE_LOOPS(operation)

static const struct workload fuse_getattr_dir = {
	.id = "fuse_getattr_dir",
	.title = "Stat a private file of a shared FUSE file system that answers at once",
	.operation = "fstat(\"share/mnt/$ID\")",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_MEDIUM,
	.contention = "the file system's one request queue",
	.setup_text = "share/mnt/, a FUSE file system of all processes; a process per worker that answers",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.apart = true,
	.mounts = "fuse",
	.inherit = fuse_inherit,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(fuse_getattr_dir);
