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

static PER_WORKER struct blockio victim;	/* the writer's */
static PER_WORKER unsigned int turn;

static enum outcome background_set_up(struct worker *w)
{
	return block_open(w, &victim, "share", 0);
}

/* Each write leaves other bytes than the one before. */
static inline enum outcome overwrite(struct worker *w)
{
	++*(uint64_t *)victim.buf;
	victim.offset = block_offset(turn, victim.size);
	turn = turn + 1 < w->workers ? turn + 1 : 0;
	return block_write(w, &victim);
}
DEFINE_LOOP(background_run, overwrite)

static const struct workload drbm_bg = {
	.id = "DRBM_bg",
	.title = "Read a private block of a shared file while a writer overwrites each reader's block in turn",
	.operation = "pread(\"share\", b, 4K, $ID*4K)",
	.paper = "FxMark (USENIX ATC 2016), Table 2: DRBM, with a background writer as in FxMark's DRBM_bg",
	.type = TYPE_DATA,
	.action = ACTION_READ,
	.sharing = SHARING_MEDIUM,
	.contention = "shared file accesses; a writer of the same blocks",
	.setup_text = "share, with a block for each process",
	.min_cores = 2,
	.modes = DATA_MODES,
	.options = block_options,
	.setup = set_up,
	LOOPS(operation),
	.background_setup = background_set_up,
	.background_run = background_run,
};
REGISTER_WORKLOADS(&drbm_bg);
