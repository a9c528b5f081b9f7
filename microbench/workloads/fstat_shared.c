// SPDX-License-Identifier: GPL-2.0-only
#include <pthread.h>
#include <sys/stat.h>

#include "../core/paths.h"

/* Threads have one descriptor, and so one struct file; each process opens its own. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static int fd = -1;

static enum outcome set_up(struct worker *w)
{
	enum outcome outcome = OP_OK;
	char path[PATH_SIZE];

	if (path_shared(w, path, "file"))
		return OP_FAILED;
	pthread_mutex_lock(&opening);
	if (fd < 0)
		outcome = file_open(w, path, &fd);
	pthread_mutex_unlock(&opening);
	return outcome;
}

static inline enum outcome operation(struct worker *w)
{
	struct stat st;

	return fstat(fd, &st) ? worker_fail(w, "fstat", NULL) : OP_OK;
}
DEFINE_LOOPS(operation)

static const struct workload fstat_shared = {
	.id = "fstat_shared",
	.title = "Stat an open file, with --option workers=threads by one descriptor of all",
	.operation = "fstat(\"share/file\")",
	.type = TYPE_METADATA,
	.action = ACTION_READ,
	.sharing = SHARING_HIGH,
	.contention = "with threads: f_count of the file, which is open once",
	.setup_text = "share/file, open",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.named_only = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&fstat_shared);
