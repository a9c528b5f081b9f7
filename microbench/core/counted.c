// SPDX-License-Identifier: GPL-2.0-only
#include "counted.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roi.h"
#include "crew.h"
#include "stock.h"
#include "window.h"

/* Workers do not reach the same count: each gets this many times its share of the stock. */
#define STOCK_SLACK 4
/*
 * The most operations of a window of a consuming workload that is extended to last long enough: per
 * worker, and of all. Filling the stocks of 80 workers would take minutes otherwise.
 */
#define STOCK_OPS 100
#define STOCK_OPS_OF_ALL 2048
/*
 * The most windows of a consuming workload whose windows end by precision: most of them end sooner,
 * and filling stocks for all of them takes longer than the windows.
 */
#define STOCK_WINDOWS 16
/* Operations of each worker that warm its caches. */
#define WARM_OPS 16
/*
 * The same before windows that end by precision, where a longer warm-up would take more than they do,
 * and of all workers.
 */
#define WARM_OPS_PRECISE 8
#define WARM_OPS_OF_ALL 512
/* Batches of all workers together that are enough to measure a rate. */
#define MOST_BATCHES 40
/*
 * The windows of a workload with batches, however precise the rate: all workers begin their batches
 * at about the same time, and windows of a few batches would show that.
 */
#define BATCH_WINDOWS 5
#define SETTLE_YIELDS 50

static enum step until_closed(struct bench *b)
{
	enum event event;

	while (!atomic_load_explicit(&b->shm->exhausted, memory_order_acquire)) {
		enum step step = crew_wait(b, NO_DEADLINE, -1, &event);

		if (step)
			return step;
	}
	return STEP_OK;
}

/* A simulator switches its mode at a system call. */
static void settle(void)
{
	for (int i = 0; i < SETTLE_YIELDS; i++)
		sched_yield();
}

void counted_prepare(struct bench *b)
{
	b->shm->one_by_one = true;
	roi_mode_ordered();
	settle();
}

void counted_finish(void)
{
	roi_mode_fast();
}

static void enter(const struct bench *b)
{
	const struct roi *roi = &b->cfg->roi;

	roi_point(roi->point);
	roi_seed(roi->seed);
	roi_free(roi->free);
	roi_mode_detailed();
	settle();
}

static void check_whole(struct bench *b)
{
	const struct tally *t = &b->shm->tally;

	if (atomic_load(&t->done) >= atomic_load(&t->base) + t->windows * t->window)
		return;
	b->result.status = STATUS_INVALID;
	b->result.end = END_EXHAUSTED;
	snprintf(b->result.reason, sizeof(b->result.reason),
		 "a worker used up its stock of %llu units before the last window ended",
		 (unsigned long long)b->result.stock.per_worker);
}

/*
 * A window of whole batches, one of each worker up to MOST_BATCHES: a directory is read at once, and
 * its entries are then handed out for next to nothing.
 */
static uint64_t window_ops(const struct config *cfg)
{
	const struct option_desc *options = cfg->workload->options;
	uint64_t batches = cfg->workers < MOST_BATCHES ? cfg->workers : MOST_BATCHES;
	uint64_t least = 0;

	for (unsigned int i = 0; cfg->workload->batch && options[i].name; i++)
		if (!strcmp(options[i].name, cfg->workload->batch))
			least = (uint64_t)cfg->options[i].number * batches;
	return least > cfg->window_ops ? least : cfg->window_ops;
}

/* Fills a stock with room for longer windows than requested, and for a worker that does more. */
static enum step fill(struct bench *b, struct tally *t)
{
	const struct config *cfg = b->cfg;
	uint64_t each = t->window / cfg->workers + 1, units;
	uint64_t most = STOCK_OPS_OF_ALL / cfg->workers;
	enum step step;

	if (!cfg->workload->stock || cfg->keep)
		return STEP_OK;
	most = most < STOCK_OPS ? most : STOCK_OPS;
	if (!cfg->precision)
		each = each > most ? each : most;
	else if (t->windows > STOCK_WINDOWS)
		t->windows = STOCK_WINDOWS;
	units = STOCK_SLACK * (t->warmup / cfg->workers + (t->windows + 1) * each);
	step = stock_exactly(b, units);
	t->most = each * cfg->workers;
	return step;
}

static uint64_t warm_ops(const struct config *cfg)
{
	uint64_t each = (cfg->precision ? WARM_OPS_PRECISE : WARM_OPS) * (uint64_t)cfg->workers;

	return cfg->precision && each < WARM_OPS_OF_ALL ? WARM_OPS_OF_ALL : each;
}

enum step counted_measure(struct bench *b)
{
	const struct config *cfg = b->cfg;
	struct tally *tally = &b->shm->tally;
	struct snapshot *first = snapshot_alloc(b->processes);
	uint64_t windows = cfg->windows;
	enum step step;

	if (!first)
		return bench_fail(b, "malloc", NULL);
	if (cfg->precision && cfg->workload->batch && windows > BATCH_WINDOWS)
		windows = BATCH_WINDOWS;
	*tally = (struct tally){
		.base = UINT64_MAX,
		.warmup = window_ops(cfg) + warm_ops(cfg),
		.window = window_ops(cfg),
		.most = UINT32_MAX,
		.windows = windows,
		.least_ns = cfg->window_ns,
		.thousandths = cfg->precision,
	};
	step = fill(b, tally);
	if (step == STEP_OK)
		step = crew_command(b, CMD_WINDOW);
	if (step)
		goto out;
	/* Reading the clock within the windows would cost operations: ours is all that is done. */
	snapshot_take(b->shm, first);
	enter(b);
	crew_go(b);
	step = until_closed(b);
	if (step == STEP_OK)
		step = crew_halt(b, true);
	if (step)
		goto out;
	check_whole(b);
	if (!window_add(b, first, b->shm->last,
			b->result.status == STATUS_OK ? END_TIME : END_EXHAUSTED))
		step = bench_fail(b, "realloc", NULL);
out:
	free(first);
	return step;
}
