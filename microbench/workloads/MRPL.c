// SPDX-License-Identifier: GPL-2.0-only
#include "../core/tree.h"

#include <stdio.h>

static PER_WORKER struct lookup target;

static enum outcome set_up(struct worker *w)
{
	char path[sizeof(target.path)];

	snprintf(path, sizeof(path), "%u/0/0/0/0", w->id);
	lookup_init(w, &target, path);
	return tree_make_file(w, path);
}

static inline enum outcome operation(struct worker *w)
{
	return lookup(w, &target);
}
DEFINE_LOOPS(operation)

static const struct workload mrpl = {
	.id = "MRPL",
	.title = "Open a private file five directories deep",
	.operation = "close(open(\"$ID/0/0/0/0\"))",
	.paper = "FxMark (USENIX ATC 2016), Table 2: MRPL",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_LOW,
	.contention = "path name look-ups",
	.setup_text = "$ID/0/0/0/0",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.options = lookup_options,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&mrpl);
