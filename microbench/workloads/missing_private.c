// SPDX-License-Identifier: GPL-2.0-only
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	return path_private(w, path, "missing");
}

static inline enum outcome operation(struct worker *w)
{
	struct stat st;

	if (__builtin_expect(!stat(path, &st), 0))
		errno = EEXIST;
	return errno == ENOENT ? OP_OK : worker_fail(w, "stat", path);
}
DEFINE_LOOPS(operation)

static const struct workload missing_private = {
	.id = "missing_private",
	.title = "Look up a name that is not there, a private one",
	.operation = "stat(\"$ID/missing\") = ENOENT",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/, empty",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.apart = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(missing_private);
