// SPDX-License-Identifier: GPL-2.0-only
#include "uring.h"

const struct option_desc uring_options[] = {
	BLOCK_OPTION,
	{ .name = "depth",
	  .help = "requests in flight; with more than one, a latency is the time between completions",
	  .value = 1, .min = 1, .max = URING_DEPTH_MAX },
	{ .name = NULL },
};

enum outcome uring_open(struct worker *w, struct uring *u, const char *path, unsigned int first)
{
	int rc;

	u->flying = 0;
	u->depth = uring_depth(w);
	if (block_open(w, &u->io, path, 0))
		return OP_FAILED;
	for (unsigned int i = 0; i < u->depth; i++) {
		u->idle[i] = i;
		u->io.offset = block_offset(first + i, u->io.size);
		if (block_lay_out(w, &u->io))
			return OP_FAILED;
	}
	u->io.offset = block_offset(first, u->io.size);
	rc = io_uring_queue_init(u->depth, &u->ring, 0);
	if (!rc)
		return OP_OK;
	errno = -rc;
	if (errno == ENOSYS || errno == EPERM)
		return worker_unsupported(w, "io_uring_setup", NULL);
	return worker_fail(w, "io_uring_setup", NULL);
}
