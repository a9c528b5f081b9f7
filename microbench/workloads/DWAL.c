// SPDX-License-Identifier: GPL-2.0-only
#include "../core/blockio.h"

#include <errno.h>
#include <fcntl.h>

/* Blocks that a steady state frees at once: a call for each would be half of what is measured. */
#define FREED_AT_ONCE 256

static PER_WORKER struct blockio io;
static PER_WORKER uint64_t appended, freed;	/* blocks */

static enum outcome set_up(struct worker *w)
{
	return block_open_private(w, &io, w->id, O_APPEND);
}

static inline enum outcome append(struct worker *w)
{
	appended++;
	return block_append(w, &io);
}

/* The stock is the space that the file may grow into: it starts again from nothing. */
static enum outcome fill(struct worker *w, uint64_t stock)
{
	if (block_truncate(w, &io, 0))
		return OP_FAILED;
	while (w->steady && appended < stock)
		if (append(w))
			return OP_FAILED;
	return OP_OK;
}

/* The oldest blocks of the file become a hole at its beginning. */
static __attribute__((noinline)) enum outcome free_oldest(struct worker *w)
{
	off_t size = (off_t)io.size, first = (off_t)freed * size;

	freed += FREED_AT_ONCE;
	if (!fallocate(io.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, first, FREED_AT_ONCE * size))
		return OP_OK;
	return errno == EOPNOTSUPP ? worker_unsupported(w, "fallocate", io.path) :
				     worker_fail(w, "fallocate", io.path);
}

static inline enum outcome append_steadily(struct worker *w)
{
	if (__builtin_expect(appended - freed >= w->stock + FREED_AT_ONCE, 0) && free_oldest(w))
		return OP_FAILED;
	return append(w);
}

static inline enum outcome operation(struct worker *w)
{
	if (w->steady)
		return append_steadily(w);
	if (w->next == w->stock)
		return OP_EXHAUSTED;
	w->next++;
	return block_append(w, &io);
}
DEFINE_LOOPS(operation)

static const struct stock_desc stock_of_blocks = { .unit = "block" };

static const struct option_desc options[] = {
	BLOCK_OPTION,
	KEEP_OPTION("blocks"),
	{ .name = NULL },
};

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
	.defers_work = true,
	.options = options,
	.stock = &stock_of_blocks,
	.setup = set_up,
	.fill = fill,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&dwal);
