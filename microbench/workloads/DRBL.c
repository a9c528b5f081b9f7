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
	return block_read(w, &io);
}
DEFINE_LOOPS(operation)

static const struct workload drbl = {
	.id = "DRBL",
	.title = "Read a block of a private file",
	.operation = "pread(\"$ID/data\", b, 4K, 0)",
	.paper = "FxMark (USENIX ATC 2016), Table 2: DRBL",
	.type = TYPE_DATA,
	.action = ACTION_READ,
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/data of one block",
	.min_cores = 1,
	.modes = DATA_MODES,
	.options = block_options,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&drbl);
