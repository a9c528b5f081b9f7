// SPDX-License-Identifier: GPL-2.0-only
#include "slices.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "request.h"
#include "window.h"

/* The first part of a slice fills caches that the other side had, and is not counted. */
#define RAMP_PART 0.1

struct sums {
	uint64_t ops, ns;
};

static struct sums sums_of(const struct bench *b)
{
	struct sums sums = { 0 };

	for (unsigned int id = 0; id < b->cfg->workers; id++) {
		sums.ops += result_ops(&b->result, id);
		sums.ns += b->result.usage->workers[id].ns;
	}
	return sums;
}

/* Write out what a slice has left for later, *seconds long. */
static enum step settle(struct bench *b, int dirfd, double *seconds)
{
	struct timespec from, to;

	if (clock_gettime(CLOCK_MONOTONIC, &from))
		return bench_fail(b, "clock_gettime", NULL);
	if (syncfs(dirfd))
		return bench_fail(b, "syncfs", b->cfg->dir);
	if (clock_gettime(CLOCK_MONOTONIC, &to))
		return bench_fail(b, "clock_gettime", NULL);
	*seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	return STEP_OK;
}

static enum step answer(struct bench *b, const struct sums *before, double length, double settled)
{
	struct sums after = sums_of(b);
	char line[128];

	snprintf(line, sizeof(line), "%" PRIu64 " %.9f %.9f %.9f %s\n", after.ops - before->ops,
		 length, (double)(after.ns - before->ns) / 1e9, settled,
		 atomic_load(&b->shm->exhausted) ? "exhausted" : "time");
	return request_answer(b, line);
}

static enum step slice(struct bench *b, int dirfd)
{
	double ramp = RAMP_PART * b->cfg->slice, length, settled = 0;
	struct sums before = sums_of(b);
	enum step step = window_run(b, ramp, b->cfg->slice - ramp, &length);

	if (step == STEP_OK && b->cfg->settle)
		step = settle(b, dirfd, &settled);
	return step ? step : answer(b, &before, length, settled);
}

enum step slices_measure(struct bench *b)
{
	int dirfd = open(b->cfg->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum step step;
	bool end;

	if (dirfd < 0)
		return bench_fail(b, "open", b->cfg->dir);
	do {
		step = request_wait(b, &end);
		if (step == STEP_OK && !end)
			step = slice(b, dirfd);
	} while (step == STEP_OK && !end);
	close(dirfd);
	return step;
}
