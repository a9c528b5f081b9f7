// SPDX-License-Identifier: GPL-2.0-only
#include "../core/mapping.h"
#include "../core/paths.h"

static PER_WORKER struct mapping mapping;

static enum outcome set_up(struct worker *w)
{
	char path[PATH_SIZE];

	if (path_private(w, path, "file"))
		return OP_FAILED;
	return mapping_open(w, &mapping, path, 0);
}

static inline enum outcome operation(struct worker *w)
{
	return mapping_touch(w, &mapping);
}
DEFINE_LOOPS(operation)

static const struct workload fault_private = {
	.id = "fault_private",
	.title = "Write to the next page of a private file that is mapped",
	.operation = "*(map(\"$ID/file\") + $N*page) = 1",
	.type = TYPE_DATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/file with so many pages, mapped",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.puts_off = true,
	.apart = true,
	.options = mapping_options,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(fault_private);
