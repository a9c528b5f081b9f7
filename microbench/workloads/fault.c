// SPDX-License-Identifier: GPL-2.0-only
#include "../core/mapping.h"
#include "../core/paths.h"

static PER_WORKER struct mapping mapping;

static enum outcome set_up(struct worker *w)
{
	char path[PATH_SIZE];

	if (w->workload->sharing == SHARING_LOW)
		return path_private(w, path, "file") ? OP_FAILED : mapping_open(w, &mapping, path, 0);
	return path_shared(w, path, "file") ? OP_FAILED : mapping_open(w, &mapping, path, w->id);
}

static inline enum outcome operation(struct worker *w)
{
	return mapping_touch(w, &mapping);
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_DATA, .action = ACTION_WRITE, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .defers_work = true, .named_only = true,	\
	.options = mapping_options, .setup = set_up, LOOPS(operation)

static const struct workload fault_private = {
	.id = "fault_private",
	.title = "Write to the next page of a private file that is mapped",
	.operation = "*(map(\"$ID/file\") + $N*page) = 1",
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "$ID/file with so many pages, mapped",
	COMMON,
};

static const struct workload fault_shared = {
	.id = "fault_shared",
	.title = "Write to the next page of a private range of a shared file that is mapped",
	.operation = "*(map(\"share/file\") + ($ID*pages + $N)*page) = 1",
	.sharing = SHARING_MEDIUM,
	.contention = "file's i_mmap_rwsem, updating inode attributes",
	.setup_text = "share/file with so many pages for each process, mapped",
	COMMON,
};
REGISTER_WORKLOADS(&fault_private, &fault_shared);
