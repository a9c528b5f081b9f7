// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE], link_path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	bool shared = w->workload->sharing == SHARING_HIGH;

	if (path_make(w, path, "file") ||
	    (shared ? path_private(w, link_path, "link") : path_make(w, link_path, "link")))
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

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_WRITE, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .defers_work = true, .named_only = true,	\
	.setup = set_up, LOOPS(operation)

static const struct workload link_dir = {
	.id = "link_dir",
	.title = "Link and unlink a private file in a shared directory",
	.operation = "link(\"share/file.$ID\", \"share/link.$ID\"); unlink(\"share/link.$ID\")",
	.sharing = SHARING_MEDIUM,
	.contention = "directory's i_rwsem",
	.setup_text = "share/file.$ID",
	COMMON,
};

static const struct workload link_private = {
	.id = "link_private",
	.title = "Link and unlink a private file in a private directory",
	.operation = "link(\"$ID/file\", \"$ID/link\"); unlink(\"$ID/link\")",
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/file",
	COMMON,
};

static const struct workload link_shared = {
	.id = "link_shared",
	.title = "Link and unlink a shared file in a private directory",
	.operation = "link(\"share/file\", \"$ID/link\"); unlink(\"$ID/link\")",
	.sharing = SHARING_HIGH,
	.contention = "file's i_rwsem and link count",
	.setup_text = "share/file, $ID/, empty",
	COMMON,
};
REGISTER_WORKLOADS(&link_dir, &link_private, &link_shared);
