// SPDX-License-Identifier: GPL-2.0-only
#include "latency.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HISTOGRAM_SIZE (HISTOGRAM_BUCKETS * sizeof(uint64_t))

enum step latency_prepare(struct bench *b)
{
	unsigned int workers = b->cfg->workers;

	b->latencies = calloc(workers, sizeof(*b->latencies));
	b->result.latencies = calloc(workers, sizeof(*b->result.latencies));
	if (!b->latencies || !b->result.latencies)
		return bench_fail(b, "calloc", NULL);
	for (unsigned int id = 0; id < workers; id++) {
		void *map = mmap(NULL, HISTOGRAM_SIZE, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		if (map == MAP_FAILED)
			return bench_fail(b, "mmap", NULL);
		b->latencies[id] = map;
		b->result.latencies[id] = calloc(HISTOGRAM_BUCKETS, sizeof(uint64_t));
		if (!b->result.latencies[id])
			return bench_fail(b, "calloc", NULL);
	}
	return STEP_OK;
}

void latency_end_window(struct bench *b, bool keep)
{
	for (unsigned int id = 0; b->latencies && id < b->cfg->workers; id++) {
		for (uint32_t i = 0; keep && i < HISTOGRAM_BUCKETS; i++)
			b->result.latencies[id][i] += b->latencies[id][i];
		memset(b->latencies[id], 0, HISTOGRAM_SIZE);
	}
}

uint64_t latency_samples(const struct bench *b, unsigned int id)
{
	uint64_t samples = 0;

	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		samples += b->result.latencies[id][i];
	return samples;
}

static bool write_worker(const uint64_t *counts, FILE *file)
{
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t record[] = { htole64(histogram_least(i)), htole64(counts[i]) };

		if (counts[i] && fwrite(record, sizeof(record), 1, file) != 1)
			return false;
	}
	return true;
}

enum step latency_write(struct bench *b)
{
	char path[4096];

	for (unsigned int id = 0; id < b->cfg->workers; id++) {
		bool good;
		FILE *file;

		snprintf(path, sizeof(path), "%s/worker-%u.hist", b->cfg->latency, id);
		file = fopen(path, "we");
		if (!file)
			return bench_fail(b, "open", path);
		good = write_worker(b->result.latencies[id], file);
		if (fclose(file) || !good)
			return bench_fail(b, "write", path);
	}
	return STEP_OK;
}
