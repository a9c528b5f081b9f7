// SPDX-License-Identifier: GPL-2.0-only
#include "../core/units.h"

static PER_WORKER struct name name, fresh;

static enum outcome set_up(struct worker *w)
{
	units_private(w, &name, "");
	units_private(w, &fresh, "");
	return dir_make_private(w);
}

static enum outcome fill(struct worker *w, uint64_t stock)
{
	return units_create(w, &fresh, stock);
}

static inline enum outcome operation(struct worker *w)
{
	return w->steady ? unit_pull(w, &name, &fresh) : unit_use(w, &name, file_unlink);
}
DEFINE_LOOPS(operation)

static const struct workload mwul = {
	.id = "MWUL",
	.title = "Unlink an empty file in a private directory",
	.operation = "unlink(\"$ID/$N\")",
	.paper = "FxMark (USENIX ATC 2016), Table 2: MWUL",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "inode frees",
	.setup_text = "$ID/ with a stock of empty files",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.defers_work = true,
	.defers_frees = true,
	.options = unit_options,
	.stock = &stock_of_files,
	.setup = set_up,
	.fill = fill,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&mwul);
