// SPDX-License-Identifier: GPL-2.0-only
#include "../core/entries.h"

static PER_WORKER struct entries entries;

static enum outcome set_up(struct worker *w)
{
	char path[16];

	snprintf(path, sizeof(path), "%u", w->id);
	if (entries_make(w, path, 0, 1))
		return OP_FAILED;
	return entries_open(w, &entries, path);
}

static inline enum outcome operation(struct worker *w)
{
	return entry_read(w, &entries);
}
DEFINE_LOOPS(operation)

static PER_WORKER struct renamer renamer;	/* the writer's */

static enum outcome background_set_up(struct worker *w)
{
	renamer_init(w, &renamer, w->workers);
	return OP_OK;
}

static inline enum outcome rename_entry(struct worker *w)
{
	return renamer_next(w, &renamer);
}
DEFINE_LOOP(background_run, rename_entry)

static const struct workload mrdl_bg = {
	.id = "MRDL_bg",
	.title = "Enumerate a private directory while a writer renames its entries",
	.operation = "readdir(\"$ID/\")",
	.paper = "FxMark (USENIX ATC 2016), Table 2: MRDL, with a background writer as in FxMark's MRDL_bg",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_LOW,
	.contention = "a writer of the same directories",
	.setup_text = "$ID/ with 1,000 empty files",
	.min_cores = 2,
	.modes = IN_MODE(MODE_BUFFERED),
	.options = entries_options,
	.batch = "entries",
	.setup = set_up,
	LOOPS(operation),
	.background_setup = background_set_up,
	.background_run = background_run,
};
REGISTER_WORKLOADS(&mrdl_bg);
