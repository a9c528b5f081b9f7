// SPDX-License-Identifier: GPL-2.0-only
#include "../core/inherited.h"

/* setfl() holds f_lock of the shared struct file while it stores f_flags. */
static inline enum outcome operation(struct worker *w)
{
	return fcntl(inherited_file, F_SETFL, 0) ? worker_fail(w, "fcntl", NULL) : OP_OK;
}
DEFINE_LOOPS(operation)

static const struct workload primitive_spinlock = {
	.id = "primitive_spinlock",
	.title = "Take a shared spinlock for one store",
	.operation = "fcntl(inherited, F_SETFL, 0)",
	.type = TYPE_DATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_HIGH,
	.contention = "f_lock of a shared struct file",
	.setup_text = "an empty memfd that all processes inherit",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.named_only = true,
	.inherit = inherited_open,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&primitive_spinlock);
