// SPDX-License-Identifier: GPL-2.0-only
#include "../core/tree.h"

#include <errno.h>
#include <stdio.h>

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

static PER_WORKER char first[sizeof(target.path)], second[sizeof(target.path)];	/* the writer's */

static enum outcome background_set_up(struct worker *w)
{
	rng_seed(&rng, w->seed, w->id);
	tree_path_init(first);
	tree_path_init(second);
	return OP_OK;
}

/* Exchanging two files changes both directories, and every path exists at any time. */
static inline enum outcome exchange(struct worker *w)
{
	do {
		tree_path_draw(first, &rng);
		tree_path_draw(second, &rng);
	} while (!strcmp(first, second));
	if (!renameat2(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE))
		return OP_OK;
	if (errno == EINVAL || errno == ENOSYS)
		return worker_unsupported(w, "renameat2(EXCHANGE)", first);
	return worker_fail(w, "renameat2", first);
}
DEFINE_LOOP(background_run, exchange)

static const struct workload mrpm_bg = {
	.id = "MRPM_bg",
	.title = "Open an arbitrary file of 8^5 while a writer renames them",
	.operation = "close(open(\"$R/$R/$R/$R/$R\"))",
	.paper = "FxMark (USENIX ATC 2016), Table 2: MRPM, with a background writer as in FxMark's MRPM_bg",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_MEDIUM,
	.contention = "path name look-ups; a writer of the same directories",
	.setup_text = "all 8^5 files $R/$R/$R/$R/$R",
	.min_cores = 2,
	.modes = IN_MODE(MODE_BUFFERED),
	.options = lookup_options,
	.setup = set_up,
	LOOPS(operation),
	.background_setup = background_set_up,
	.background_run = background_run,
};
REGISTER_WORKLOADS(&mrpm_bg);
