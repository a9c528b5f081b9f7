// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	return path_make(w, path, "missing");
}

static inline enum outcome operation(struct worker *w)
{
	struct stat st;

	if (__builtin_expect(!stat(path, &st), 0))
		errno = EEXIST;
	return errno == ENOENT ? OP_OK : worker_fail(w, "stat", path);
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_READ, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .named_only = true, .setup = set_up,		\
	LOOPS(operation)

static const struct workload missing_private = {
	.id = "missing_private",
	.title = "Look up a name that is not there, a private one",
	.operation = "stat(\"$ID/missing\") = ENOENT",
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/, empty",
	COMMON,
};

static const struct workload missing_shared = {
	.id = "missing_shared",
	.title = "Look up a name that is not there, the same for all",
	.operation = "stat(\"share/missing\") = ENOENT",
	.sharing = SHARING_HIGH,
	.contention = "none: a negative dentry is only read",
	.setup_text = "share/, empty",
	COMMON,
};
REGISTER_WORKLOADS(&missing_private, &missing_shared);
