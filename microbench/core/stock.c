// SPDX-License-Identifier: GPL-2.0-only
#include "stock.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "crew.h"
#include "window.h"

/* The pilot grows from its least stock until it runs for this long. */
#define PILOT_UNITS 256
#define PILOT_GROWTH 8
#define PILOT_ROUNDS 4
#define PILOT_SECONDS 0.04
/* The rate may rise after the pilot. */
#define STOCK_MARGIN 1.25
/* The part of a window that its ramp may take. */
#define RAMP_PART 0.1
/*
 * The stock is too small to measure with when so many windows in a row were too
 * short; a single one may be the scheduler's doing, which kept the parent from
 * taking the first snapshot.
 */
#define SHORT_WINDOWS 4
/* After one, the pilot's rate is taken to have been too low by this. */
#define SHORT_GROWTH 4
/* Sums of seconds are compared to this. */
#define TIME_ROUNDING 1e-6
/* The parts of what is free that a stock may take. */
#define SPACE_PART 0.75
#define INODES_PART 0.9

/* What limits a stock, and what to do about it. */
static const struct {
	const char *text, *hint;
} bounds[] = {
	[BOUND_PILOT] = { "the rate of the pilot", "use fewer CPUs or a shorter --min-window" },
	[BOUND_SPACE] = { "the free space or --space", "use a larger device or fewer CPUs" },
	[BOUND_INODES] = { "the free inodes or --inodes", "use more inodes or fewer CPUs" },
	[BOUND_MAXIMUM] = { "--max-stock", "use a larger --max-stock" },
};

static uint64_t memory_available(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "r");

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	fclose(file);
	return kib * 1024;
}

/*
 * Free bytes and inodes for us; UINT64_MAX where the file system has no such
 * limit: btrfs has no inode count, tmpfs may have neither. tmpfs is also
 * bounded by memory, of which it may take half.
 */
static enum step free_resources(struct bench *b, uint64_t *bytes, uint64_t *inodes)
{
	struct statvfs vfs;
	struct statfs fs;
	uint64_t memory;

	if (statvfs(b->cfg->dir, &vfs))
		return bench_fail(b, "statvfs", b->cfg->dir);
	if (statfs(b->cfg->dir, &fs))
		return bench_fail(b, "statfs", b->cfg->dir);
	*bytes = vfs.f_blocks ? vfs.f_bavail * vfs.f_frsize : UINT64_MAX;
	*inodes = vfs.f_files ? vfs.f_favail : UINT64_MAX;
	if ((fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC) && (memory = memory_available()))
		*bytes = *bytes < memory / 2 ? *bytes : memory / 2;
	return STEP_OK;
}

static uint64_t unit_bytes(const struct config *cfg)
{
	const struct option_desc *options = cfg->workload->options;

	if (cfg->workload->stock->bytes)
		return cfg->workload->stock->bytes;
	for (unsigned int i = 0; options && options[i].name; i++)
		if (!strcmp(options[i].name, "block"))
			return (uint64_t)cfg->options[i].number;
	return 4096;
}

static void limit_by(struct stock *stock, uint64_t units, enum bound bound)
{
	if (units < stock->limit) {
		stock->limit = units;
		stock->limit_bound = bound;
	}
}

enum step stock_limit(struct bench *b)
{
	const struct config *cfg = b->cfg;
	const struct stock_desc *desc = cfg->workload->stock;
	struct stock *stock = &b->result.stock;
	uint64_t bytes = 0, inodes = 0;
	char what[160];

	if (free_resources(b, &bytes, &inodes))
		return STEP_FAILED;
	bytes = (uint64_t)((double)bytes * SPACE_PART);
	inodes = (uint64_t)((double)inodes * INODES_PART);
	if (cfg->space && cfg->space < bytes)
		bytes = cfg->space;
	if (cfg->inodes && cfg->inodes < inodes)
		inodes = cfg->inodes;

	stock->limit = cfg->max_stock;
	stock->limit_bound = BOUND_MAXIMUM;
	limit_by(stock, bytes / unit_bytes(cfg) / cfg->workers, BOUND_SPACE);
	if (desc->inodes)
		limit_by(stock, inodes / desc->inodes / cfg->workers, BOUND_INODES);
	if (stock->limit)
		return STEP_OK;
	snprintf(what, sizeof(what), "no room for a stock of one %s per worker, bounded by %s: %s", desc->unit,
		 bounds[stock->limit_bound].text, bounds[stock->limit_bound].hint);
	error_record(&b->shm->error, -1, "statvfs", NULL, cfg->dir, ENOSPC, what);
	return STEP_FAILED;
}

/* The stock for `seconds` at `rate` a worker; it never shrinks. */
static void size(struct stock *stock, double rate, double seconds)
{
	uint64_t before = stock->per_worker;

	double wanted = rate * seconds * STOCK_MARGIN + 1;

	stock->wanted = wanted < 1e15 ? (uint64_t)wanted : (uint64_t)1e15;
	stock->bound = stock->wanted > stock->limit ? stock->limit_bound : BOUND_PILOT;
	stock->per_worker = stock->wanted > stock->limit ? stock->limit : stock->wanted;
	if (stock->per_worker < before)
		stock->per_worker = before;
}

static enum step fill(struct bench *b, uint64_t units)
{
	enum step step;

	b->shm->stock = units;
	step = crew_command(b, CMD_FILL);
	return step ? step : crew_command(b, CMD_SYNC);
}

/* Use up a small stock; *seconds is how long the fastest worker took. */
static enum step pilot_round(struct bench *b, uint64_t units, double *seconds)
{
	enum step step = fill(b, units);
	enum event event;
	uint64_t opened;

	if (step == STEP_OK)
		step = crew_command(b, CMD_PILOT);
	if (step)
		return step;
	opened = now_ns();
	crew_go(b);
	while (!atomic_load_explicit(&b->shm->exhausted, memory_order_acquire)) {
		step = crew_wait(b, NO_DEADLINE, -1, &event);
		if (step)
			return step;
	}
	*seconds = (double)(b->shm->last->ns - opened) / 1e9;
	return crew_halt(b, true);
}

/* As many units as will last for PILOT_SECONDS, with the usual margin. */
static uint64_t pilot_next(uint64_t units, double seconds)
{
	double enough = (double)units * PILOT_SECONDS / seconds * STOCK_MARGIN;
	double most = (double)units * PILOT_GROWTH;

	return (uint64_t)(enough < most ? enough : most);
}

enum step stock_pilot(struct bench *b)
{
	struct stock *stock = &b->result.stock;
	uint64_t units = PILOT_UNITS;
	double seconds;

	for (int round = 1; ; round++) {
		enum step step;

		units = units < stock->limit ? units : stock->limit;
		step = pilot_round(b, units, &seconds);
		if (step)
			return step;
		if (seconds >= PILOT_SECONDS || units == stock->limit || round == PILOT_ROUNDS)
			break;
		units = pilot_next(units, seconds);
	}
	stock->rate = (double)units / seconds;
	stock->per_worker = units;
	size(stock, stock->rate, b->cfg->duration + b->cfg->warmup);
	return fill(b, stock->per_worker);
}

enum step stock_exactly(struct bench *b, uint64_t units)
{
	struct stock *stock = &b->result.stock;

	stock->wanted = units;
	stock->bound = units > stock->limit ? stock->limit_bound : BOUND_PILOT;
	stock->per_worker = units > stock->limit ? stock->limit : units;
	return fill(b, stock->per_worker);
}

static void too_short(struct bench *b)
{
	const struct stock *stock = &b->result.stock;

	b->result.status = STATUS_INVALID;
	b->result.end = END_EXHAUSTED;
	if (*b->result.reason)
		return;
	snprintf(b->result.reason, sizeof(b->result.reason),
		 "a stock of %llu units per worker, bounded by %s, is used up before the %g s of --min-window: %s",
		 (unsigned long long)stock->per_worker, bounds[stock->bound].text, b->cfg->min_window,
		 bounds[stock->bound].hint);
}

enum step stock_measure(struct bench *b)
{
	const struct config *cfg = b->cfg;
	struct stock *stock = &b->result.stock;
	double rate = stock->rate;
	int in_a_row = 0;

	for (;;) {
		double left = cfg->duration - b->result.seconds, length, lasts, ramp;
		enum step step;

		lasts = (double)stock->per_worker / rate;
		ramp = cfg->warmup < RAMP_PART * lasts ? cfg->warmup : RAMP_PART * lasts;
		step = window_run(b, ramp, left > cfg->min_window ? left : cfg->min_window, &length);
		if (step || b->result.seconds >= cfg->duration - TIME_ROUNDING)
			return step;
		if (length > 0)
			rate = (double)stock->per_worker / (ramp + length);
		else if (stock->bound == BOUND_PILOT)
			rate *= SHORT_GROWTH;
		/* Windows that count have one stock, unless it has become too small for any other. */
		if (stock->bound == BOUND_PILOT && (b->result.seconds == 0 || length <= 0))
			size(stock, rate, cfg->duration + cfg->warmup);
		in_a_row = length > 0 ? 0 : in_a_row + 1;
		if (in_a_row == SHORT_WINDOWS) {
			too_short(b);
			return STEP_OK;
		}
		step = fill(b, stock->per_worker);
		if (step)
			return step;
		stock->restocks++;
	}
}
