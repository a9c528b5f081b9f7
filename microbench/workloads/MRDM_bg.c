// SPDX-License-Identifier: GPL-2.0-only
#include "../core/entries.h"

static PER_WORKER struct entries entries;

static enum outcome set_up(struct worker *w)
{
	if (entries_make(w, "share", w->id, w->workers))
		return OP_FAILED;
	return entries_open(w, &entries, "share");
}

static inline enum outcome operation(struct worker *w)
{
	return entry_read(w, &entries);
}
DEFINE_LOOPS(operation)

static PER_WORKER struct renamer renamer;	/* the writer's */

static enum outcome background_set_up(struct worker *w)
{
	renamer_init(w, &renamer, 0);
	return OP_OK;
}

static inline enum outcome rename_entry(struct worker *w)
{
	return renamer_next(w, &renamer);
}
DEFINE_LOOP(background_run, rename_entry)

static const struct workload mrdm_bg = {
	.id = "MRDM_bg",
	.title = "Enumerate a shared directory while a writer renames its entries",
	.operation = "readdir(\"share/\")",
	.paper = "FxMark (USENIX ATC 2016), Table 2: MRDM, with a background writer as in FxMark's MRDM_bg",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_MEDIUM,
	.contention = "shared directory accesses; a writer of the same directory",
	.setup_text = "share/ with 1,000 empty files",
	.min_cores = 2,
	.modes = IN_MODE(MODE_BUFFERED),
	.options = entries_options,
	.batch = "entries",
	.setup = set_up,
	LOOPS(operation),
	.background_setup = background_set_up,
	.background_run = background_run,
};
REGISTER_WORKLOADS(&mrdm_bg);
