// SPDX-License-Identifier: GPL-2.0-only
#include "../core/workload.h"

#include <sys/stat.h>

#define MASK 0077

static enum outcome set_up(struct worker *w)
{
	(void)w;
	umask(MASK);
	return OP_OK;
}

/*
 * The kernel exchanges a word of the process's own fs_struct, which has cache lines of its own.
 * getppid() reads the parent's structures, which all workers share and the parent changes when it
 * wakes; getpid() reads a line of the PID namespace that each fork on the machine changes; any
 * call on a file passes through the superblock and the security module.
 */
static inline enum outcome operation(struct worker *w)
{
	return umask(MASK) == MASK ? OP_OK : worker_fail(w, "umask", NULL);
}
DEFINE_LOOPS(operation)

static const struct workload control_syscall = {
	.id = "control_syscall",
	.title = "A system call that shares nothing",
	.operation = "umask(077)",
	.type = TYPE_DATA,
	.action = ACTION_READ,
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "nothing",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.named_only = true,
	.control = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&control_syscall);
