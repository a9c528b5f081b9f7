// SPDX-License-Identifier: GPL-2.0-only
#include "../core/units.h"

#define BYTES 4096

static PER_WORKER struct name name, oldest;
static const char content[BYTES];

static enum outcome set_up(struct worker *w)
{
	units_private(w, &name, "");
	units_private(w, &oldest, "");
	return dir_make_private(w);
}

/* The stock is the room for new files: those of the last window go. */
static enum outcome fill(struct worker *w, uint64_t stock)
{
	(void)stock;
	return units_each(w, &oldest, w->next, file_unlink);
}

static inline enum outcome create_write(struct worker *w, const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	ssize_t n;

	if (fd < 0)
		return worker_fail(w, "open", path);
	n = write(fd, content, BYTES);
	if (n != BYTES)
		return worker_short(w, "write", path, n, BYTES);
	return close(fd) ? worker_fail(w, "close", path) : OP_OK;
}

static inline enum outcome operation(struct worker *w)
{
	return unit_use(w, &name, create_write);
}
DEFINE_LOOPS(operation)

static const struct stock_desc stock_of_written_files = {
	.unit = "file", .bytes = 2048 + BYTES, .inodes = 1,
};

static const struct workload create_write_private = {
	.id = "create_write_private",
	.title = "Create a file of 4 KiB in a private directory",
	.operation = "open(\"$ID/$N\", O_CREAT|O_EXCL); write(it, 4K); close",
	.paper = "FAST'18, Table 1: tokubench, which spreads the files over a tree of directories",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "inode and block allocations",
	.setup_text = "$ID/, empty",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.defers_work = true,
	.named_only = true,
	.stock = &stock_of_written_files,
	.setup = set_up,
	.fill = fill,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&create_write_private);
