// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"
#include "../core/uring.h"

static PER_WORKER struct uring uring;

static enum outcome set_up(struct worker *w)
{
	char path[PATH_SIZE];

	if (path_private(w, path, "file"))
		return OP_FAILED;
	return uring_open(w, &uring, path, 0);
}

static inline enum outcome operation(struct worker *w)
{
	return uring_write(w, &uring);
}
DEFINE_LOOPS(operation)

static const struct workload uring_write_private = {
	.id = "uring_write_private",
	.title = "Overwrite a private block of a private file by io_uring",
	.operation = "io_uring: write(\"$ID/file\", b, 4K, 0)",
	.type = TYPE_DATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/file, open, with a block and request",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.puts_off = true,
	.apart = true,
	.options = uring_options,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(uring_write_private);
