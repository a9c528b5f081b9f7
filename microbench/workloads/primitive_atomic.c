// SPDX-License-Identifier: GPL-2.0-only
#include "../core/inherited.h"

/*
 * Each call does one atomic addition to f_ref (f_count before Linux 6.13) of the shared struct
 * file. The lock of the table of descriptors is the process's own.
 */
static inline enum outcome operation(struct worker *w)
{
	int fd = dup(inherited_file);

	if (fd < 0)
		return worker_fail(w, "dup", NULL);
	return close(fd) ? worker_fail(w, "close", NULL) : OP_OK;
}
DEFINE_LOOPS(operation)

static const struct workload primitive_atomic = {
	.id = "primitive_atomic",
	.title = "Two atomic additions to a shared counter",
	.operation = "close(dup(inherited))",
	.type = TYPE_DATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_HIGH,
	.contention = "reference count of a shared struct file",
	.setup_text = "an empty memfd that all processes inherit",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.named_only = true,
	.inherit = inherited_open,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&primitive_atomic);
