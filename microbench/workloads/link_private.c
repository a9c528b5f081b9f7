// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE], link_path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	if (path_private(w, path, "file") || path_private(w, link_path, "link"))
		return OP_FAILED;
	return file_ensure(w, path);
}

static inline enum outcome operation(struct worker *w)
{
	if (link(path, link_path))
		return worker_fail(w, "link", link_path);
	return file_unlink(w, link_path);
}
DEFINE_LOOPS(operation)

static const struct workload link_private = {
	.id = "link_private",
	.title = "Link and unlink a private file in a private directory",
	.operation = "link(\"$ID/file\", \"$ID/link\"); unlink(\"$ID/link\")",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/file",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.puts_off = true,
	.apart = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(link_private);
