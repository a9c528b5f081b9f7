// SPDX-License-Identifier: GPL-2.0-only
#include <sys/utsname.h>

#include "../core/workload.h"

/* uname() copies the names while it holds uts_sem for reading. */
static inline enum outcome operation(struct worker *w)
{
	struct utsname names;

	return uname(&names) ? worker_fail(w, "uname", NULL) : OP_OK;
}
DEFINE_LOOPS(operation)

static const struct workload primitive_rwsem_read = {
	.id = "primitive_rwsem_read",
	.title = "Take a shared read-write semaphore for reading",
	.operation = "uname()",
	.type = TYPE_DATA,
	.action = ACTION_READ,
	.sharing = SHARING_HIGH,
	.contention = "uts_sem",
	.setup_text = "nothing",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.named_only = true,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&primitive_rwsem_read);
