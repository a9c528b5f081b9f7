// SPDX-License-Identifier: GPL-2.0-only
#include "../core/blockio.h"

static PER_WORKER struct blockio io;

static enum outcome set_up(struct worker *w)
{
	return block_open_private(w, &io, w->id, 0);
}

/* The file is w->stock - w->next blocks long; write it up to `stock` and have them allocated. */
static enum outcome fill(struct worker *w, uint64_t stock)
{
	enum outcome outcome = OP_OK;

	for (uint64_t block = w->stock - w->next; block < stock && !outcome; block++) {
		io.offset = (off_t)block * (off_t)io.size;
		outcome = block_write(w, &io);
	}
	return outcome ? outcome : block_flush(w, &io);
}

static inline enum outcome operation(struct worker *w)
{
	if (w->next == w->stock)
		return OP_EXHAUSTED;
	w->next++;
	return block_truncate(w, &io, (off_t)(w->stock - w->next) * (off_t)io.size);
}
DEFINE_LOOPS(operation)

static const struct stock_desc stock_of_blocks = { .unit = "block" };

static const struct workload dwtl = {
	.id = "DWTL",
	.title = "Shrink a private file by a block",
	.operation = "truncate(\"$ID/data\", size - 4K)",
	.paper = "FxMark (USENIX ATC 2016), Table 2: DWTL",
	.type = TYPE_DATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "disk block frees",
	.setup_text = "$ID/data, a stock of allocated blocks",
	.min_cores = 1,
	.modes = DATA_MODES,
	.defers_work = true,
	.options = block_options,
	.stock = &stock_of_blocks,
	.setup = set_up,
	.fill = fill,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&dwtl);
