// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>

#include "../core/inherited.h"

static PER_WORKER int own;

/* A struct file of the process's own, so that only the inode is shared. */
static enum outcome set_up(struct worker *w)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", inherited_file);
	own = open(path, O_RDWR | O_CLOEXEC);
	return own < 0 ? worker_fail(w, "open", path) : OP_OK;
}

/* shmem_file_llseek() holds i_rwsem for writing while it looks for data; there is none. */
static inline enum outcome operation(struct worker *w)
{
	if (lseek(own, 0, SEEK_DATA) == -1 && errno == ENXIO)
		return OP_OK;
	return worker_fail(w, "lseek", NULL);
}
DEFINE_LOOPS(operation)

static const struct workload primitive_rwsem_write = {
	.id = "primitive_rwsem_write",
	.title = "Take a shared read-write semaphore for writing",
	.operation = "lseek(own, 0, SEEK_DATA)",
	.type = TYPE_DATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_HIGH,
	.contention = "i_rwsem of a shared inode",
	.setup_text = "an empty memfd that each process has opened",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.named_only = true,
	.inherit = inherited_open,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&primitive_rwsem_write);
