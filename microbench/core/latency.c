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

	b->ticks = ticks_start();
	if (b->cfg->rate)
		b->ticks.tsc = false; /* latencies begin at times of the clock by which workers sleep */
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

static uint64_t in_ns(uint32_t bucket, double length)
{
	return (uint64_t)((double)histogram_least(bucket) * length + 0.5);
}

/* A nanosecond may have several ticks, each with a bucket of its own. */
static bool add_record(struct bench *b, uint64_t ns, uint64_t count)
{
	struct turn_record *records = b->records;
	struct turn_record *last = b->nrecords ? &records[b->nrecords - 1] : NULL;

	if (last && le64toh(last->turn) == b->turn && le64toh(last->ns) == ns) {
		last->count = htole64(le64toh(last->count) + count);
		return true;
	}
	if (b->nrecords == b->room) {
		b->room = b->room ? 2 * b->room : 1024;
		records = realloc(records, b->room * sizeof(*records));
		if (!records)
			return false;
		b->records = records;
	}
	records[b->nrecords++] = (struct turn_record){
		htole64(b->turn), htole64(ns), htole64(count),
	};
	return true;
}

bool latency_add_turn(struct bench *b)
{
	double length = ticks_length(&b->ticks);

	for (uint32_t i = 0; b->latencies && i < HISTOGRAM_BUCKETS; i++) {
		uint64_t count = 0;

		for (unsigned int id = 0; id < b->cfg->workers; id++)
			count += b->latencies[id][i];
		if (count && !add_record(b, in_ns(i, length), count))
			return false;
	}
	return true;
}

uint64_t latency_samples(const struct bench *b, unsigned int id)
{
	uint64_t samples = 0;

	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		samples += b->result.latencies[id][i];
	return samples;
}

static bool write_worker(const uint64_t *counts, double length, FILE *file)
{
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t ns = in_ns(i, length), count = counts[i];
		uint64_t record[2];

		while (count && i + 1 < HISTOGRAM_BUCKETS && in_ns(i + 1, length) == ns)
			count += counts[++i];
		record[0] = htole64(ns);
		record[1] = htole64(count);
		if (count && fwrite(record, sizeof(record), 1, file) != 1)
			return false;
	}
	return true;
}

static enum step write_turns(struct bench *b)
{
	char path[4096];
	FILE *file;
	bool good;

	snprintf(path, sizeof(path), "%s/" LATENCY_TURNS, b->cfg->latency);
	file = fopen(path, "we");
	if (!file)
		return bench_fail(b, "open", path);
	good = fwrite(b->records, sizeof(*b->records), b->nrecords, file) == b->nrecords;
	if (fclose(file) || !good)
		return bench_fail(b, "write", path);
	return STEP_OK;
}

enum step latency_write(struct bench *b)
{
	double length = ticks_length(&b->ticks);
	char path[4096];

	for (unsigned int id = 0; id < b->cfg->workers; id++) {
		bool good;
		FILE *file;

		snprintf(path, sizeof(path), "%s/worker-%u.hist", b->cfg->latency, id);
		file = fopen(path, "we");
		if (!file)
			return bench_fail(b, "open", path);
		good = write_worker(b->result.latencies[id], length, file);
		if (fclose(file) || !good)
			return bench_fail(b, "write", path);
	}
	return b->cfg->slice ? write_turns(b) : STEP_OK;
}
