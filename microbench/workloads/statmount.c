// SPDX-License-Identifier: GPL-2.0-only
#include "../core/namespace.h"
#include "../core/statmount.h"

static PER_WORKER struct statmount_request request;
static PER_WORKER struct statmount_report report;

static enum outcome set_up(struct worker *w)
{
	return namespace_join(w) ? OP_FAILED : statmount_prepare(w, &request, ".");
}

static inline enum outcome operation(struct worker *w)
{
	return statmount_describe(w, &request, &report);
}
DEFINE_LOOPS(operation)

static PER_WORKER struct bind bind;	/* the writer's */

static enum outcome background_set_up(struct worker *w)
{
	return namespace_join(w) ? OP_FAILED : bind_init(w, &bind, path_private);
}

static inline enum outcome background_operation(struct worker *w)
{
	return bind_and_unmount(w, &bind);
}
DEFINE_LOOP(background_run, background_operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_READ, .sharing = SHARING_HIGH,		\
	.modes = IN_MODE(MODE_BUFFERED), .named_only = true,				\
	.inherit = namespace_inherit, .setup = set_up, LOOPS(operation)

static const struct workload statmount_shared = {
	.id = "statmount_shared",
	.title = "Describe a mount of one mount namespace",
	.operation = "statmount(id of \".\")",
	.contention = "d_lockref of the root, namespace_sem taken for reading",
	.setup_text = "a mount namespace of all processes",
	.min_cores = 1,
	COMMON,
};

static const struct workload statmount_shared_bg = {
	.id = "statmount_shared_bg",
	.title = "Describe a mount of one mount namespace while a writer mounts and unmounts in it",
	.operation = "statmount(id of \".\")",
	.contention = "d_lockref of the root, namespace_sem taken for reading; a writer of the same namespace",
	.setup_text = "a mount namespace of all processes",
	.min_cores = 2,
	.defers_frees = true,
	.background_setup = background_set_up,
	.background_run = background_run,
	COMMON,
};
REGISTER_WORKLOADS(&statmount_shared, &statmount_shared_bg);
