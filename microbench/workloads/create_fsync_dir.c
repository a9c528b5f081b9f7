// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	return path_in_shared_dir(w, path, "file");
}

static inline enum outcome operation(struct worker *w)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	if (fd < 0)
		return worker_fail(w, "open", path);
	if (fsync(fd))
		return worker_fail(w, "fsync", path);
	if (close(fd))
		return worker_fail(w, "close", path);
	return file_unlink(w, path);
}
DEFINE_LOOPS(operation)

static const struct workload create_fsync_dir = {
	.id = "create_fsync_dir",
	.title = "Create a file in a shared directory, sync and unlink it",
	.operation = "fsync(open(\"share/file.$ID\", O_CREAT|O_EXCL)); close; unlink",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_MEDIUM,
	.contention = "journal's commit, directory's i_rwsem",
	.setup_text = "share/, empty",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.puts_off = true,
	.defers_frees = true,
	.apart = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(create_fsync_dir);
