// SPDX-License-Identifier: GPL-2.0-only
#include "counters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static enum step counter_read(struct bench *b, const char *path, uint64_t *value)
{
	FILE *file = fopen(path, "r");
	int found;

	if (!file)
		return bench_fail(b, "open", path);
	errno = EINVAL;
	found = fscanf(file, "%" SCNu64, value);
	fclose(file);
	return found == 1 ? STEP_OK : bench_fail(b, "read", path);
}

enum step counters_begin(struct bench *b)
{
	enum step step = STEP_OK;

	for (unsigned int i = 0; i < b->cfg->ncounters && step == STEP_OK; i++)
		step = counter_read(b, b->cfg->counters[i], &b->result.counters[i]);
	return step;
}

enum step counters_end(struct bench *b)
{
	enum step step = STEP_OK;
	uint64_t value = 0;

	for (unsigned int i = 0; i < b->cfg->ncounters && step == STEP_OK; i++) {
		step = counter_read(b, b->cfg->counters[i], &value);
		b->result.counters[i] = value - b->result.counters[i];
	}
	return step;
}
