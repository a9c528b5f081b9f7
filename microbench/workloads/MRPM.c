// SPDX-License-Identifier: GPL-2.0-only
#include "../core/tree.h"

static PER_WORKER struct lookup target;
static PER_WORKER struct rng rng;

static enum outcome set_up(struct worker *w)
{
	lookup_init(w, &target, "0/0/0/0/0");
	rng_seed(&rng, w->seed, w->id);
	return tree_make(w);
}

static inline enum outcome operation(struct worker *w)
{
	tree_path_draw(target.path, &rng);
	return lookup(w, &target);
}
DEFINE_LOOPS(operation)

static const struct workload mrpm = {
	.id = "MRPM",
	.title = "Open an arbitrary file of 8^5, five directories deep",
	.operation = "close(open(\"$R/$R/$R/$R/$R\"))",
	.paper = "FxMark (USENIX ATC 2016), Table 2: MRPM",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_MEDIUM,
	.contention = "path name look-ups",
	.setup_text = "all 8^5 files $R/$R/$R/$R/$R",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.options = lookup_options,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&mrpm);
