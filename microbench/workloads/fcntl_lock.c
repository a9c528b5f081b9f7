// SPDX-License-Identifier: GPL-2.0-only
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
	struct flock lock = { .l_type = F_WRLCK, .l_start = (off_t)w->id, .l_len = 1 };

	if (fcntl(fd, F_SETLK, &lock))
		return worker_fail(w, "fcntl(F_WRLCK)", path);
	lock.l_type = F_UNLCK;
	return fcntl(fd, F_SETLK, &lock) ? worker_fail(w, "fcntl(F_UNLCK)", path) : OP_OK;
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_WRITE, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .named_only = true, .setup = set_up,		\
	LOOPS(operation)

static const struct workload fcntl_lock_private = {
	.id = "fcntl_lock_private",
	.title = "Lock and unlock a byte of its own of a private file",
	.operation = "fcntl(\"$ID/file\", F_SETLK, F_WRLCK of byte $ID); F_UNLCK",
	.sharing = SHARING_LOW,
	.contention = "file_lock_lists",
	.setup_text = "$ID/file, open",
	COMMON,
};

static const struct workload fcntl_lock_shared = {
	.id = "fcntl_lock_shared",
	.title = "Lock and unlock a byte of its own of a shared file",
	.operation = "fcntl(\"share/file\", F_SETLK, F_WRLCK of byte $ID); F_UNLCK",
	.sharing = SHARING_HIGH,
	.contention = "flc_lock, file_lock_lists",
	.setup_text = "share/file, open",
	COMMON,
};
REGISTER_WORKLOADS(&fcntl_lock_private, &fcntl_lock_shared);
