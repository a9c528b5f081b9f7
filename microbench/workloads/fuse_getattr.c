// SPDX-License-Identifier: GPL-2.0-only
#include "../core/fuse.h"

static PER_WORKER struct fuse_file file;

static enum outcome set_up(struct worker *w)
{
	return fuse_open(w, &file);
}

static inline enum outcome operation(struct worker *w)
{
	return fuse_getattr(w, &file);
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_READ, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .named_only = true, .mounts = "fuse",		\
	.setup = set_up, LOOPS(operation)

static const struct workload fuse_getattr_dir = {
	.id = "fuse_getattr_dir",
	.title = "Stat a private file of a shared FUSE file system that answers at once",
	.operation = "fstat(\"share/mnt/$ID\")",
	.sharing = SHARING_MEDIUM,
	.contention = "the file system's one request queue",
	.setup_text = "share/mnt/, a FUSE file system of all processes; a process per worker that answers",
	.inherit = fuse_inherit,
	COMMON,
};

static const struct workload fuse_getattr_private = {
	.id = "fuse_getattr_private",
	.title = "Stat a private file of a private FUSE file system that answers at once",
	.operation = "fstat(\"$ID/mnt/$ID\")",
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/mnt/, a FUSE file system of each process; a process per worker that answers",
	COMMON,
};
REGISTER_WORKLOADS(&fuse_getattr_dir, &fuse_getattr_private);
