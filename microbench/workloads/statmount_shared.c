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

static const struct workload statmount_shared = {
	.id = "statmount_shared",
	.title = "Describe a mount of one mount namespace",
	.operation = "statmount(id of \".\")",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_HIGH,
	.contention = "d_lockref of the root, namespace_sem taken for reading",
	.setup_text = "a mount namespace of all processes",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.apart = true,
	.inherit = namespace_inherit,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(statmount_shared);
