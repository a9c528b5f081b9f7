// SPDX-License-Identifier: GPL-2.0-only
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
	return block_write(w, &io) ? OP_FAILED : block_sync(w, &io);
}
DEFINE_LOOPS(operation)

static const struct workload dwsl = {
	.id = "DWSL",
	.title = "Synchronously overwrite a block of a private file",
	.operation = "pwrite(\"$ID/data\", b, 4K, 0); fsync(\"$ID/data\")",
	.paper = "FxMark (USENIX ATC 2016), Table 2: DWSL",
	.type = TYPE_DATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "consistency mechanism, such as journaling",
	.setup_text = "$ID/data of one block",
	.min_cores = 1,
	.modes = DATA_MODES,
	.defers_work = true,
	.options = block_options,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&dwsl);
