// SPDX-License-Identifier: GPL-2.0-only
#include "slices.h"

#include <inttypes.h>
#include <stdio.h>

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

static enum step answer(struct bench *b, const struct sums *before, double length)
{
	struct sums after = sums_of(b);
	char line[128];

	snprintf(line, sizeof(line), "%" PRIu64 " %.9f %.9f %s\n", after.ops - before->ops, length,
		 (double)(after.ns - before->ns) / 1e9,
		 atomic_load(&b->shm->exhausted) ? "exhausted" : "time");
	return request_answer(b, line);
}

enum step slices_measure(struct bench *b)
{
	double ramp = RAMP_PART * b->cfg->slice;
	struct sums before;
	enum step step;
	double length;
	bool end;

	for (;;) {
		step = request_wait(b, &end);
		if (step || end)
			return step;
		before = sums_of(b);
		step = window_run(b, ramp, b->cfg->slice - ramp, &length);
		if (step == STEP_OK)
			step = answer(b, &before, length);
		if (step)
			return step;
	}
}
