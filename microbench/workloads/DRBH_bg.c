// SPDX-License-Identifier: GPL-2.0-only
#include "../core/blockio.h"

static PER_WORKER struct blockio io;

static enum outcome set_up(struct worker *w)
{
	if (block_open(w, &io, "share", 0))
		return OP_FAILED;
	return w->id ? OP_OK : block_lay_out(w, &io);
}

static inline enum outcome operation(struct worker *w)
{
	return block_read(w, &io);
}
DEFINE_LOOPS(operation)

static PER_WORKER struct blockio victim;	/* the writer's */

static enum outcome background_set_up(struct worker *w)
{
	return block_open(w, &victim, "share", 0);
}

/* Each write leaves other bytes than the one before. */
static inline enum outcome overwrite(struct worker *w)
{
	++*(uint64_t *)victim.buf;
	return block_write(w, &victim);
}
DEFINE_LOOP(background_run, overwrite)

static const struct workload drbh_bg = {
	.id = "DRBH_bg",
	.title = "Read a shared block of a shared file while a writer overwrites it",
	.operation = "pread(\"share\", b, 4K, 0)",
	.paper = "FxMark (USENIX ATC 2016), Table 2: DRBH, with a background writer as in FxMark's DRBH_bg",
	.type = TYPE_DATA,
	.action = ACTION_READ,
	.sharing = SHARING_HIGH,
	.contention = "shared block accesses; a writer of the same blocks",
	.setup_text = "share of one block",
	.min_cores = 2,
	.modes = DATA_MODES,
	.options = block_options,
	.setup = set_up,
	LOOPS(operation),
	.background_setup = background_set_up,
	.background_run = background_run,
};
REGISTER_WORKLOADS(&drbh_bg);
