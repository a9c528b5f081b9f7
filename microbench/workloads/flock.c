// SPDX-License-Identifier: GPL-2.0-only
#include <sys/file.h>

#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];
static PER_WORKER int fd;

static enum outcome set_up(struct worker *w)
{
	if (path_make(w, path, "file"))
		return OP_FAILED;
	return file_open(w, path, &fd);
}

static inline enum outcome operation(struct worker *w)
{
	if (flock(fd, LOCK_SH) || flock(fd, LOCK_UN))
		return worker_fail(w, "flock", path);
	return OP_OK;
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_READ, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .named_only = true, .setup = set_up,		\
	LOOPS(operation)

static const struct workload flock_private = {
	.id = "flock_private",
	.title = "Lock and unlock a private file as a reader",
	.operation = "flock(\"$ID/file\", LOCK_SH); flock(LOCK_UN)",
	.sharing = SHARING_LOW,
	.contention = "file_lock_lists",
	.setup_text = "$ID/file, open",
	COMMON,
};

static const struct workload flock_shared = {
	.id = "flock_shared",
	.title = "Lock and unlock a shared file as a reader",
	.operation = "flock(\"share/file\", LOCK_SH); flock(LOCK_UN)",
	.sharing = SHARING_HIGH,
	.contention = "flc_lock, file_lock_lists",
	.setup_text = "share/file, open",
	COMMON,
};
REGISTER_WORKLOADS(&flock_private, &flock_shared);
