// SPDX-License-Identifier: GPL-2.0-only
#include "../core/units.h"

static PER_WORKER struct name name, oldest;

static enum outcome set_up(struct worker *w)
{
	units_shared(w, &name, "");
	units_shared(w, &oldest, "");
	return dir_make(w, "share");
}

/* The stock is the room for new files: those of the last window go. */
static enum outcome fill(struct worker *w, uint64_t stock)
{
	if (w->steady)
		return units_each(w, &name, stock, file_create);
	return units_each(w, &oldest, w->next, file_unlink);
}

static inline enum outcome operation(struct worker *w)
{
	return w->steady ? unit_push(w, &name, &oldest) : unit_use(w, &name, file_create);
}
DEFINE_LOOPS(operation)

static const struct workload mwcm = {
	.id = "MWCM",
	.title = "Create an empty file in a shared directory",
	.operation = "create(\"share/$ID.$N\")",
	.paper = "FxMark (USENIX ATC 2016), Table 2: MWCM",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_MEDIUM,
	.contention = "inode allocations and insertions",
	.setup_text = "share/, empty",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.defers_work = true,
	.options = unit_options,
	.stock = &stock_of_files,
	.setup = set_up,
	.fill = fill,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&mwcm);
