// SPDX-License-Identifier: GPL-2.0-only
#include <sys/stat.h>

#include "../core/blockio.h"

static PER_WORKER struct blockio io;

static enum outcome set_up(struct worker *w)
{
	if (block_open_private(w, &io, w->id, 0))
		return OP_FAILED;
	return block_lay_out(w, &io);
}

static inline enum outcome operation(struct worker *w)
{
	struct stat st;

	if (block_write(w, &io))
		return OP_FAILED;
	return fstat(io.fd, &st) ? worker_fail(w, "fstat", io.path) : OP_OK;
}
DEFINE_LOOPS(operation)

static const struct workload write_stat_private = {
	.id = "write_stat_private",
	.title = "Overwrite a block of a private file and stat it",
	.operation = "pwrite(\"$ID/data\", b, 4K, 0); fstat",
	.type = TYPE_DATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "floor of the kernel's time stamps (since Linux 6.13)",
	.setup_text = "$ID/data, open, with a block",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.defers_work = true,
	.named_only = true,
	.options = block_options,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&write_stat_private);
