// SPDX-License-Identifier: GPL-2.0-only
#include "../core/blockio.h"

#include <stdlib.h>

static PER_WORKER struct blockio io;
static PER_WORKER struct blockio *victims;		/* the writer's: each reader's file */
static PER_WORKER unsigned int turn;

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

static enum outcome background_set_up(struct worker *w)
{
	victims = calloc(w->workers, sizeof(*victims));
	if (!victims)
		return worker_fail(w, "calloc", NULL);
	for (unsigned int id = 0; id < w->workers; id++)
		if (block_open_private(w, &victims[id], id, 0))
			return OP_FAILED;
	return OP_OK;
}

/* Each write leaves other bytes than the one before. */
static inline enum outcome overwrite(struct worker *w)
{
	struct blockio *victim = &victims[turn];

	turn = turn + 1 < w->workers ? turn + 1 : 0;
	++*(uint64_t *)victim->buf;
	return block_write(w, victim);
}
DEFINE_LOOP(background_run, overwrite)

static const struct workload drbl_bg = {
	.id = "DRBL_bg",
	.title = "Read a block of a private file while a writer overwrites each reader's block in turn",
	.operation = "pread(\"$ID/data\", b, 4K, 0)",
	.paper = "FxMark (USENIX ATC 2016), Table 2: DRBL, with a background writer as in FxMark's DRBL_bg",
	.type = TYPE_DATA,
	.action = ACTION_READ,
	.sharing = SHARING_LOW,
	.contention = "a writer of the same blocks",
	.setup_text = "$ID/data of one block",
	.min_cores = 2,
	.modes = DATA_MODES,
	.options = block_options,
	.setup = set_up,
	LOOPS(operation),
	.background_setup = background_set_up,
	.background_run = background_run,
};
REGISTER_WORKLOADS(&drbl_bg);
