// SPDX-License-Identifier: GPL-2.0-only
#include "../core/blockio.h"

static PER_WORKER struct blockio io;

static enum outcome set_up(struct worker *w)
{
	if (block_open(w, &io, "share", 0))
		return OP_FAILED;
	io.offset = block_offset(w->id, io.size);
	return block_lay_out(w, &io);
}

static inline enum outcome operation(struct worker *w)
{
	return block_read(w, &io);
}
DEFINE_LOOPS(operation)

static const struct workload drbm = {
	.id = "DRBM",
	.title = "Read a private block of a shared file",
	.operation = "pread(\"share\", b, 4K, $ID*4K)",
	.paper = "FxMark (USENIX ATC 2016), Table 2: DRBM",
	.type = TYPE_DATA,
	.action = ACTION_READ,
	.sharing = SHARING_MEDIUM,
	.contention = "shared file accesses",
	.setup_text = "share, with a block for each process",
	.min_cores = 1,
	.modes = DATA_MODES,
	.options = block_options,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&drbm);
