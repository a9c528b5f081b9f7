// SPDX-License-Identifier: GPL-2.0-only
#include "latency.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* 32 MiB a worker. Operations beyond it, warm-up included, are counted as dropped. */
#define SAMPLES_MAX (8u << 20)

enum step latency_prepare(struct bench *b)
{
	unsigned int workers = b->cfg->workers;

	b->samples_max = SAMPLES_MAX;
	b->samples = calloc(workers, sizeof(*b->samples));
	b->result.samples = calloc(workers, sizeof(uint64_t));
	b->result.dropped = calloc(workers, sizeof(uint64_t));
	if (!b->samples || !b->result.samples || !b->result.dropped)
		return bench_fail(b, "calloc", NULL);
	for (unsigned int i = 0; i < workers; i++) {
		void *map = mmap(NULL, SAMPLES_MAX * sizeof(uint32_t), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		if (map == MAP_FAILED)
			return bench_fail(b, "mmap", NULL);
		b->samples[i] = map;
	}
	return STEP_OK;
}

/* The n-th operation's latency is the n-th sample, so a window is a slice. */
static bool write_worker(struct bench *b, unsigned int id, FILE *file)
{
	struct result *r = &b->result;

	for (unsigned int i = 0; i < r->nwindows; i++) {
		uint64_t first = r->windows[i].first[id], end = first + r->windows[i].ops[id];
		uint64_t last = end < b->samples_max ? end : b->samples_max;

		for (uint64_t n = first; n < last; n++) {
			uint32_t sample = htole32(b->samples[id][n]);

			if (fwrite(&sample, sizeof(sample), 1, file) != 1)
				return false;
			r->samples[id]++;
		}
		r->dropped[id] += end - (last > first ? last : first);
	}
	return true;
}

enum step latency_write(struct bench *b)
{
	char path[4096];

	for (unsigned int id = 0; id < b->cfg->workers; id++) {
		bool good;
		FILE *file;

		snprintf(path, sizeof(path), "%s/worker-%u.u32", b->cfg->latency, id);
		file = fopen(path, "we");
		if (!file)
			return bench_fail(b, "open", path);
		good = write_worker(b, id, file);
		if (fclose(file) || !good)
			return bench_fail(b, "write", path);
	}
	return STEP_OK;
}
