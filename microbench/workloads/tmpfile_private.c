// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static inline enum outcome operation(struct worker *w)
{
	int fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	/* The kernel, or the file system, has none. */
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
		return worker_unsupported(w, "open(O_TMPFILE)", path);
	if (fd < 0)
		return worker_fail(w, "open(O_TMPFILE)", path);
	return close(fd) ? worker_fail(w, "close", path) : OP_OK;
}

static enum outcome set_up(struct worker *w)
{
	if (path_private(w, path, ""))
		return OP_FAILED;
	return operation(w);
}
DEFINE_LOOPS(operation)

static const struct workload tmpfile_private = {
	.id = "tmpfile_private",
	.title = "Open and close a file without a name",
	.operation = "close(open(\"$ID/\", O_TMPFILE|O_RDWR))",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "inode_hash_lock, s_inode_list_lock, list of orphans",
	.setup_text = "$ID/, empty",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.defers_work = true,
	.defers_frees = true,
	.named_only = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&tmpfile_private);
