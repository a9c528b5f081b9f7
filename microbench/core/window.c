// SPDX-License-Identifier: GPL-2.0-only
#include "window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crew.h"
#include "latency.h"

/* The uncertainty of the edges of a window, relative to its length, above which it is not trusted. */
#define SKEW_MAX 0.01

struct edges {
	struct snapshot *first, *previous, *last;
	struct usage *before, *after;
};

static bool edges_alloc(struct bench *b, struct edges *e)
{
	if (e->first)
		return true;
	e->first = snapshot_alloc(b->processes);
	e->previous = snapshot_alloc(b->processes);
	e->last = snapshot_alloc(b->processes);
	e->before = usage_alloc(b->processes);
	e->after = usage_alloc(b->processes);
	return e->first && e->previous && e->last && e->before && e->after;
}

static void snapshot_copy(const struct bench *b, struct snapshot *to, const struct snapshot *from)
{
	memcpy(to, from, sizeof(*to) + b->processes * sizeof(to->ops[0]));
}

static uint64_t ops_between(const struct bench *b, const struct snapshot *from,
			    const struct snapshot *to)
{
	uint64_t ops = 0;

	for (unsigned int i = 0; i < b->cfg->workers; i++)
		ops += to->ops[i] - from->ops[i];
	return ops;
}

static bool interval_add(struct bench *b, const struct snapshot *from, const struct snapshot *to)
{
	struct result *r = &b->result;
	size_t count = r->nintervals + 1;
	double *seconds = realloc(r->interval_seconds, count * sizeof(*seconds));
	uint64_t *ops;

	if (!seconds)
		return false;
	r->interval_seconds = seconds;
	ops = realloc(r->interval_ops, count * sizeof(*ops));
	if (!ops)
		return false;
	r->interval_ops = ops;
	seconds[r->nintervals] = (double)(to->ns - from->ns) / 1e9;
	ops[r->nintervals++] = ops_between(b, from, to);
	return true;
}

bool window_add(struct bench *b, const struct snapshot *first, const struct snapshot *last,
		enum end end)
{
	struct result *r = &b->result;
	struct window *windows = realloc(r->windows, (r->nwindows + 1) * sizeof(*windows));
	struct window *win;

	if (!windows)
		return false;
	r->windows = windows;
	win = &windows[r->nwindows];
	win->first = calloc(b->processes, sizeof(uint64_t));
	win->ops = calloc(b->processes, sizeof(uint64_t));
	if (!win->first || !win->ops)
		return false;
	win->start_ns = first->ns;
	win->seconds = (double)(last->ns - first->ns) / 1e9;
	win->end = end;
	for (unsigned int i = 0; i < b->processes; i++) {
		win->first[i] = first->ops[i];
		win->ops[i] = last->ops[i] - first->ops[i];
	}
	r->nwindows++;
	r->seconds += win->seconds;
	return true;
}

/* Whether the parent could not read the counters in time; sets the reason. */
static bool uncertain(struct bench *b, const struct edges *e, double length)
{
	double skew = (double)(e->first->skew_ns + e->last->skew_ns) / 1e9;

	b->result.reason[0] = '\0';
	if (length < b->cfg->min_window || skew <= SKEW_MAX * length)
		return false;
	snprintf(b->result.reason, sizeof(b->result.reason),
		 "the start and end of a window of %.4f s are known only to %.6f s, because other processes kept the CPU; stop them or measure longer",
		 length, skew);
	return true;
}

static bool exhausted(const struct bench *b)
{
	return atomic_load_explicit(&b->shm->exhausted, memory_order_acquire);
}

/* Wait until `deadline` or until a worker runs out. */
static enum step sleep_until(struct bench *b, uint64_t deadline)
{
	enum event event;

	do {
		enum step step = crew_wait(b, deadline, -1, &event);

		if (step)
			return step;
	} while (event != EVENT_DEADLINE && !exhausted(b));
	return STEP_OK;
}

/* Take a snapshot inside the window; false if a worker ran out of stock meanwhile. */
static bool snapshot_inside(const struct bench *b, struct snapshot *snap)
{
	snapshot_take(b->shm, snap);
	return !atomic_load_explicit(&b->shm->exhausting, memory_order_acquire);
}

/* Waits from the first snapshot to the end of the window, and records intervals meanwhile. */
static enum step watch(struct bench *b, struct edges *e, uint64_t length)
{
	uint64_t interval = (uint64_t)(b->cfg->interval * 1e9);
	uint64_t end = e->first->ns + length, next = e->first->ns;
	enum step step;

	snapshot_copy(b, e->previous, e->first);
	do {
		next += interval;
		step = sleep_until(b, next < end ? next : end);
		if (step || exhausted(b) || next >= end)
			return step;
	} while (snapshot_inside(b, e->last) && interval_add(b, e->previous, e->last) &&
		 (snapshot_copy(b, e->previous, e->last), true));
	return STEP_OK;
}

/* Has no effect if a worker ran out of stock meanwhile, which ended the window. */
static void begin_timed(struct bench *b)
{
	uint32_t expected = TIMED_NOT_YET;

	b->timed_ns = now_ns();
	atomic_compare_exchange_strong(&b->shm->timed, &expected, TIMED_NOW);
}

static enum step account(struct bench *b, struct usage *usage)
{
	const char *path;

	if (accounting_read(b->accounting, usage, &path))
		return STEP_OK;
	return bench_fail(b, "read", path);
}

/* Called next to a snapshot: in a short window, CPU time must cover the same operations. */
static enum step read_clocks(struct bench *b, struct usage *usage)
{
	if (accounting_clocks(b->accounting, usage))
		return STEP_OK;
	return bench_fail(b, "clock_gettime", NULL);
}

enum step window_run(struct bench *b, double ramp, double seconds, double *length)
{
	static struct edges e;
	unsigned int intervals = b->result.nintervals;
	enum step step, halted;
	uint64_t opened;
	enum end end;
	bool inside;

	*length = 0;
	if (!edges_alloc(b, &e))
		return bench_fail(b, "malloc", NULL);
	step = crew_command(b, CMD_WINDOW);
	if (step)
		return step;
	opened = now_ns();
	crew_go(b);
	step = sleep_until(b, opened + (uint64_t)(ramp * 1e9));
	if (step == STEP_OK)
		step = account(b, e.before);
	if (step)
		return step;
	inside = snapshot_inside(b, e.first);
	begin_timed(b);
	if (read_clocks(b, e.before))
		return STEP_FAILED;
	b->result.warmup_seconds += (double)(e.first->ns - opened) / 1e9;
	if (!inside) {
		step = crew_halt(b, true);
		latency_end_window(b, false);
		return step;
	}

	step = watch(b, &e, (uint64_t)(seconds * 1e9));
	if (step == STEP_FAILED || account(b, e.after))
		return STEP_FAILED;
	inside = snapshot_inside(b, e.last);
	atomic_store_explicit(&b->shm->timed, TIMED_OVER, memory_order_relaxed);
	if (read_clocks(b, e.after))
		return STEP_FAILED;
	if (inside) {
		atomic_store_explicit(&b->shm->closed_ns, e.last->ns, memory_order_relaxed);
		end = step == STEP_INTERRUPTED ? END_INTERRUPTED : END_TIME;
		halted = crew_halt(b, step != STEP_INTERRUPTED);
	} else {
		end = END_EXHAUSTED;
		halted = crew_halt(b, step != STEP_INTERRUPTED);
		snapshot_copy(b, e.last, b->shm->last);
	}
	if (halted)
		step = halted;
	if (step == STEP_FAILED)
		return step;
	*length = (double)(e.last->ns - e.first->ns) / 1e9;
	if ((uncertain(b, &e, *length) || *length < b->cfg->min_window) && end != END_INTERRUPTED) {
		latency_end_window(b, false);
		b->result.nintervals = intervals;
		*length = 0;
		return step;
	}
	if (e.last->ns > e.previous->ns && !interval_add(b, e.previous, e.last))
		return bench_fail(b, "realloc", NULL);
	if (!window_add(b, e.first, e.last, end))
		return bench_fail(b, "realloc", NULL);
	if (b->cfg->slice && !latency_add_turn(b))
		return bench_fail(b, "realloc", NULL);
	latency_end_window(b, true);
	for (unsigned int id = 0; id < b->cfg->workers; id++)
		b->result.backlog += b->shm->slots[id].backlog;
	usage_add(b->result.usage, e.before, e.after, b->processes);
	return step;
}
