// SPDX-License-Identifier: GPL-2.0-only
#include "../core/units.h"

static PER_WORKER struct name from, to, renamed, fresh;

static enum outcome set_up(struct worker *w)
{
	units_private(w, &from, "");
	units_private(w, &fresh, "");
	units_shared(w, &to, "");
	units_shared(w, &renamed, "");
	return dir_make_private(w) ? OP_FAILED : dir_make(w, "share");
}

static enum outcome fill(struct worker *w, uint64_t stock)
{
	return units_return(w, &renamed, &fresh, stock);
}

static inline enum outcome operation(struct worker *w)
{
	return unit_rename(w, &from, &to);
}
DEFINE_LOOPS(operation)

static const struct workload mwrm = {
	.id = "MWRM",
	.title = "Move a private file to a shared directory",
	.operation = "rename(\"$ID/$N\", \"share/$ID.$N\")",
	.paper = "FxMark (USENIX ATC 2016), Table 2: MWRM",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_MEDIUM,
	.contention = "insertions to the shared directory",
	.setup_text = "$ID/ with a stock of empty files; share/, empty",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.defers_work = true,
	.stock = &stock_of_files,
	.setup = set_up,
	.fill = fill,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&mwrm);
