// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../core/workload.h"

static int ends[2];

static const char *make_pipe(const char *dir)
{
	(void)dir;
	return pipe2(ends, O_CLOEXEC) ? "pipe2" : NULL;
}

/* pipe_ioctl() holds the pipe's mutex while it counts what waits in it: nothing. */
static inline enum outcome operation(struct worker *w)
{
	int waiting;

	return ioctl(ends[0], FIONREAD, &waiting) ? worker_fail(w, "ioctl", NULL) : OP_OK;
}
DEFINE_LOOPS(operation)

static const struct workload primitive_mutex = {
	.id = "primitive_mutex",
	.title = "Take a shared mutex for some loads",
	.operation = "ioctl(pipe, FIONREAD)",
	.type = TYPE_DATA,
	.action = ACTION_READ,
	.sharing = SHARING_HIGH,
	.contention = "mutex of a shared pipe",
	.setup_text = "an empty pipe that all processes inherit",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.named_only = true,
	.inherit = make_pipe,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&primitive_mutex);
