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

static const struct workload mrdl = {
	.id = "MRDL",
	.title = "Enumerate a private directory",
	.operation = "readdir(\"$ID/\")",
	.paper = "FxMark (USENIX ATC 2016), Table 2: MRDL",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/ with 1,000 empty files",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.options = entries_options,
	.batch = "entries",
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&mrdl);
