// SPDX-License-Identifier: GPL-2.0-only
#include "../core/tree.h"

static PER_WORKER struct lookup target;

static enum outcome set_up(struct worker *w)
{
	lookup_init(w, &target, "0/0/0/0/0");
	return tree_make_file(w, target.path);
}

static inline enum outcome operation(struct worker *w)
{
	return lookup(w, &target);
}
DEFINE_LOOPS(operation)

static const struct workload mrph = {
	.id = "MRPH",
	.title = "Open the same file five directories deep",
	.operation = "close(open(\"0/0/0/0/0\"))",
	.paper = "FxMark (USENIX ATC 2016), Table 2: MRPH",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_HIGH,
	.contention = "path name look-ups",
	.setup_text = "0/0/0/0/0",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.options = lookup_options,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&mrph);
