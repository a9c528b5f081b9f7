// SPDX-License-Identifier: GPL-2.0-only
#include "../core/mapping.h"
#include "../core/paths.h"

static PER_WORKER struct mapping mapping;

static enum outcome set_up(struct worker *w)
{
	char path[PATH_SIZE];

	if (path_shared(w, path, "file"))
		return OP_FAILED;
	return mapping_open(w, &mapping, path, w->id);
}

static inline enum outcome operation(struct worker *w)
{
	return mapping_touch(w, &mapping);
}
DEFINE_LOOPS(operation)

static const struct workload fault_shared = {
	.id = "fault_shared",
	.title = "Write to the next page of a private range of a shared file that is mapped",
	.operation = "*(map(\"share/file\") + ($ID*pages + $N)*page) = 1",
	.type = TYPE_DATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_MEDIUM,
	.contention = "file's i_mmap_rwsem, updating inode attributes",
	.setup_text = "share/file with so many pages for each process, mapped",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.puts_off = true,
	.apart = true,
	.options = mapping_options,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(fault_shared);
