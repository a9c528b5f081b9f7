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

static const struct workload mrdm = {
	.id = "MRDM",
	.title = "Enumerate a shared directory",
	.operation = "readdir(\"share/\")",
	.paper = "FxMark (USENIX ATC 2016), Table 2: MRDM",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_MEDIUM,
	.contention = "shared directory accesses",
	.setup_text = "share/ with 1,000 empty files",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.options = entries_options,
	.batch = "entries",
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&mrdm);
