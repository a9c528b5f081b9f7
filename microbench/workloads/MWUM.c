// SPDX-License-Identifier: GPL-2.0-only
#include "../core/units.h"

static struct name name;

static enum outcome set_up(struct worker *w)
{
	units_shared(w, &name, "");
	return dir_make(w, "share");
}

static enum outcome fill(struct worker *w, uint64_t stock)
{
	return units_refill(w, &name, stock);
}

static inline enum outcome operation(struct worker *w)
{
	if (w->next == w->stock)
		return OP_EXHAUSTED;
	if (file_unlink(w, name.path))
		return OP_FAILED;
	name_next(&name);
	w->next++;
	return OP_OK;
}
DEFINE_LOOPS(operation)

static const struct stock_desc stock_of_files = { .unit = "file", .bytes = 2048, .inodes = 1 };

static const struct workload mwum = {
	.id = "MWUM",
	.title = "Unlink an empty file in a shared directory",
	.operation = "unlink(\"share/$ID.$N\")",
	.paper = "FxMark (USENIX ATC 2016), Table 2: MWUM",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_MEDIUM,
	.contention = "inode frees and deletions",
	.setup_text = "share/ with a stock of empty files of each process",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.stock = &stock_of_files,
	.setup = set_up,
	.fill = fill,
	.run = operation_run,
	.run_latency = operation_run_latency,
};
REGISTER_WORKLOAD(mwum);
