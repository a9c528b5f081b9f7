// SPDX-License-Identifier: GPL-2.0-only
#include "workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The linker's bounds of the section that REGISTER_WORKLOADS fills. */
extern const struct workload *const __start_fscale_workloads[];
extern const struct workload *const __stop_fscale_workloads[];

const char *const mode_names[MODES] = {
	[MODE_BUFFERED] = "buffered",
	[MODE_DIRECT] = "direct",
	[MODE_DONTCACHE] = "dontcache",
};

const struct workload *const *workload_all(unsigned int *count)
{
	*count = (unsigned int)(__stop_fscale_workloads - __start_fscale_workloads);
	return __start_fscale_workloads;
}

const struct workload *workload_find(const char *id)
{
	unsigned int count;
	const struct workload *const *all = workload_all(&count);

	for (unsigned int i = 0; i < count; i++)
		if (!strcmp(all[i]->id, id))
			return all[i];
	return NULL;
}

enum outcome worker_fail(struct worker *w, const char *call, const char *path)
{
	error_record(&w->shm->error, (int)w->id, call, w->dir, path, errno, NULL);
	return OP_FAILED;
}

enum outcome worker_short(struct worker *w, const char *call, const char *path, long done,
			  long wanted)
{
	char what[64];

	if (done < 0)
		return worker_fail(w, call, path);
	snprintf(what, sizeof(what), "moved %ld of %ld bytes", done, wanted);
	error_record(&w->shm->error, (int)w->id, call, w->dir, path, EIO, what);
	return OP_FAILED;
}

enum outcome worker_unsupported(struct worker *w, const char *call, const char *path)
{
	w->shm->error.unsupported = true;
	return worker_fail(w, call, path);
}

bool kernel_refuses(void)
{
	return errno == ENOSYS || errno == ENODEV || errno == EPERM;
}

static const char *const crews[] = { "processes", "threads", "threads_files", NULL };
static const char *const arrivals[] = { "poisson", "fixed", NULL };

const struct option_desc common_options[COMMON_OPTIONS] = {
	[COMMON_WORKERS] = {
		.name = "workers", .choices = crews,
		.help = "threads share one memory map and one descriptor table; threads_files share the map alone",
	},
	[COMMON_RATE] = {
		.name = "rate", .max = 1000000,
		.help = "operations that arrive per second and worker, whether or not those before have ended. 0: each begins when the last one ends",
	},
	[COMMON_ARRIVAL] = {
		.name = "arrival", .choices = arrivals,
		.help = "with rate, the time between two arrivals: exponential, or the same each time",
	},
};

static const union option_value *option_find(const struct worker *w, const char *name)
{
	const struct option_desc *options = w->workload->options;

	for (unsigned int i = 0; options && options[i].name; i++)
		if (!strcmp(options[i].name, name))
			return &w->options[i];
	fprintf(stderr, "fscale-bench: %s has no option %s\n", w->workload->id, name);
	abort();
}

long long option_number(const struct worker *w, const char *name)
{
	return option_find(w, name)->number;
}

const char *option_text(const struct worker *w, const char *name)
{
	return option_find(w, name)->text;
}
