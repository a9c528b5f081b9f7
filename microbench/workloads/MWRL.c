// SPDX-License-Identifier: GPL-2.0-only
#include "../core/units.h"

static PER_WORKER struct name from, to, renamed, fresh;
static PER_WORKER bool one;

static enum outcome set_up(struct worker *w)
{
	one = !strcmp(option_text(w, "files"), "one");
	units_private(w, &from, "");
	units_private(w, &fresh, "");
	units_private(w, &to, one ? "" : ".2");
	units_private(w, &renamed, ".2");
	if (one)
		name_next(&to);
	return dir_make_private(w);
}

/* With one file the stock is only a number of renames: it is there from the first time on. */
static enum outcome fill(struct worker *w, uint64_t stock)
{
	if (one)
		return w->stock ? OP_OK : file_create(w, from.path);
	return units_return(w, &renamed, &fresh, stock);
}

static inline enum outcome operation(struct worker *w)
{
	return unit_rename(w, &from, &to);
}
DEFINE_LOOPS(operation)

static const char *const files[] = { "many", "one", NULL };

static const struct option_desc options[] = {
	{ .name = "files", .help = "rename each of many files once as in the paper, or one file again and again as in FxMark's code",
	  .choices = files },
	{ .name = NULL },
};

static const struct workload mwrl = {
	.id = "MWRL",
	.title = "Rename a private file in a private directory",
	.operation = "rename(\"$ID/$N\", \"$ID/$N.2\")",
	.paper = "FxMark (USENIX ATC 2016), Table 2: MWRL",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/ with a stock of empty files",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.defers_work = true,
	.options = options,
	.stock = &stock_of_files,
	.setup = set_up,
	.fill = fill,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&mwrl);
