// SPDX-License-Identifier: GPL-2.0-only
#include "../core/units.h"

static PER_WORKER struct name name, oldest;

static enum outcome set_up(struct worker *w)
{
	units_private(w, &name, "");
	units_private(w, &oldest, "");
	return dir_make_private(w);
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

static const struct workload mwcl = {
	.id = "MWCL",
	.title = "Create an empty file in a private directory",
	.operation = "create(\"$ID/$N\")",
	.paper = "FxMark (USENIX ATC 2016), Table 2: MWCL",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "inode allocations",
	.setup_text = "$ID/, empty",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.defers_work = true,
	.options = unit_options,
	.stock = &stock_of_files,
	.setup = set_up,
	.fill = fill,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&mwcl);
