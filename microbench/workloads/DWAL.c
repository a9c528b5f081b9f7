// SPDX-License-Identifier: GPL-2.0-only
#include "../core/blockio.h"

#include <fcntl.h>

static struct blockio io;

static enum outcome set_up(struct worker *w)
{
	return block_open_private(w, &io, w->id, O_APPEND);
}

/* The stock is the space that the file may grow into: it starts again from nothing. */
static enum outcome fill(struct worker *w, uint64_t stock)
{
	(void)stock;
	return block_truncate(w, &io, 0);
}

static inline enum outcome operation(struct worker *w)
{
	if (w->next == w->stock)
		return OP_EXHAUSTED;
	w->next++;
	return block_append(w, &io);
}
DEFINE_LOOPS(operation)

static const struct stock_desc stock_of_blocks = { .unit = "block" };

static const struct workload dwal = {
	.id = "DWAL",
	.title = "Append a block to a private file",
	.operation = "append(\"$ID/data\", b, 4K)",
	.paper = "FxMark (USENIX ATC 2016), Table 2: DWAL",
	.type = TYPE_DATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "disk block allocations",
	.setup_text = "$ID/data, empty",
	.min_cores = 1,
	.modes = DATA_MODES,
	.puts_off = true,
	.options = block_options,
	.stock = &stock_of_blocks,
	.setup = set_up,
	.fill = fill,
	.run = operation_run,
	.run_latency = operation_run_latency,
	.run_turn = operation_run_turn,
	.run_counted = operation_run_counted,
};
REGISTER_WORKLOAD(dwal);
