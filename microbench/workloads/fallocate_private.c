// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>

#include "../core/blockio.h"

static PER_WORKER struct blockio io;

static inline enum outcome operation(struct worker *w)
{
	if (__builtin_expect(fallocate(io.fd, 0, 0, (off_t)io.size), 0))
		return errno == EOPNOTSUPP ? worker_unsupported(w, "fallocate", io.path) :
					     worker_fail(w, "fallocate", io.path);
	return block_truncate(w, &io, 0);
}

static enum outcome set_up(struct worker *w)
{
	if (block_open_private(w, &io, w->id, 0))
		return OP_FAILED;
	return operation(w);
}
DEFINE_LOOPS(operation)

static const struct workload fallocate_private = {
	.id = "fallocate_private",
	.title = "Allocate a block of a private file and free it",
	.operation = "fallocate(\"$ID/data\", 4K); ftruncate(0)",
	.type = TYPE_DATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "block allocator (ext4: s_mb_last_group, s_md_lock until Linux 6.17)",
	.setup_text = "$ID/data, open and empty",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.defers_work = true,
	.named_only = true,
	.options = block_options,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&fallocate_private);
