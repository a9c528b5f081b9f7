// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"
#include "../core/uring.h"

static PER_WORKER struct uring uring;

static enum outcome set_up(struct worker *w)
{
	char path[PATH_SIZE];

	if (w->workload->sharing == SHARING_LOW)
		return path_private(w, path, "file") ? OP_FAILED : uring_open(w, &uring, path, 0);
	if (path_shared(w, path, "file"))
		return OP_FAILED;
	return uring_open(w, &uring, path, w->id * uring_depth(w));
}

static inline enum outcome operation(struct worker *w)
{
	return uring_write(w, &uring);
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_DATA, .action = ACTION_WRITE, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .defers_work = true, .named_only = true,	\
	.options = uring_options, .setup = set_up, LOOPS(operation)

static const struct workload uring_write_private = {
	.id = "uring_write_private",
	.title = "Overwrite a private block of a private file by io_uring",
	.operation = "io_uring: write(\"$ID/file\", b, 4K, 0)",
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/file, open, with a block and request",
	COMMON,
};

static const struct workload uring_write_shared = {
	.id = "uring_write_shared",
	.title = "Overwrite a private block of a shared file by io_uring",
	.operation = "io_uring: write(\"share/file\", b, 4K, $ID*4K)",
	.sharing = SHARING_MEDIUM,
	.contention = "file's i_rwsem",
	.setup_text = "share/file, open, with a block for each process and request",
	COMMON,
};
REGISTER_WORKLOADS(&uring_write_private, &uring_write_shared);
