// SPDX-License-Identifier: GPL-2.0-only
#include "../core/units.h"

static struct name from, to;

static enum outcome set_up(struct worker *w)
{
	units_private(w, &from, "");
	units_shared(w, &to, "");
	return dir_make_private(w) ? OP_FAILED : dir_make(w, "share");
}

/* Those that were renamed go back, and more come up to `stock`. */
static enum outcome fill(struct worker *w, uint64_t stock)
{
	if (units_rename(w, &to, &from, w->next))
		return OP_FAILED;
	return units_make(w, &from, w->stock, stock, file_create);
}

static inline enum outcome operation(struct worker *w)
{
	if (w->next == w->stock)
		return OP_EXHAUSTED;
	if (file_rename(w, from.path, to.path))
		return OP_FAILED;
	name_next(&from);
	name_next(&to);
	w->next++;
	return OP_OK;
}
DEFINE_LOOPS(operation)

static const struct stock_desc stock_of_files = { .unit = "file", .bytes = 2048, .inodes = 1 };

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
	.stock = &stock_of_files,
	.setup = set_up,
	.fill = fill,
	.run = operation_run,
	.run_latency = operation_run_latency,
};
REGISTER_WORKLOAD(mwrm);
