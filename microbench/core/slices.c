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

/* The sums over all workers in a turn. */
struct done {
	uint64_t ops;
	double seconds;		/* that a worker took on average for its part of them; 0: not known */
	double cpu_seconds;
};

/*
 * Seconds that a worker's operations took. The operation that was under way when the timed part of
 * the turn began counts by its part that lies in it: adds that part to *ops. So the worker's phase
 * does not change its rate, and a worker that waits through the whole turn counts as long as it
 * waits, also behind the turn's end.
 */
static double stint_seconds(const struct stint *stint, uint64_t begin_ns, double *ops)
{
	if (stint->last_ns <= begin_ns)
		return 0;
	if (stint->before_ns && stint->before_ns < begin_ns && stint->first_ns > begin_ns)
		*ops += (double)(stint->first_ns - begin_ns) /
			(double)(stint->first_ns - stint->before_ns);
	return (double)(stint->last_ns - begin_ns) / 1e9;
}

/*
 * Put the stints of a turn in the place of the window that the parent saw from outside. Operations
 * are divided by the workers' time and not by that of the window, and sums of both are kept, so that
 * an operation of any length weighs what it costs: a mean of the workers' rates would give one
 * that is longer than the turn the weight of a turn.
 */
static struct done add_up(struct bench *b, double length)
{
	struct result *r = &b->result;
	struct window *win = &r->windows[r->nwindows - 1];
	struct done done = { 0 };
	double seconds = 0, parts = 0;

	for (unsigned int id = 0; id < b->cfg->workers; id++) {
		const struct stint *stint = &b->shm->slots[id].stint;

		seconds += stint_seconds(stint, b->timed_ns, &parts);
		win->ops[id] = stint->ops;
		done.ops += stint->ops;
		done.cpu_seconds += (double)stint->cpu_ns / 1e9;
	}
	done.seconds = seconds > 0 ? seconds / b->cfg->workers : length;
	if (done.ops)
		done.seconds *= (double)done.ops / ((double)done.ops + parts);
	r->seconds += done.seconds - win->seconds;
	win->seconds = done.seconds;
	return done;
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

static enum step answer(struct bench *b, const struct done *done, double settled)
{
	char line[128];

	snprintf(line, sizeof(line), "%" PRIu64 " %.9f %.9f %.9f %s\n", done->ops, done->seconds,
		 done->cpu_seconds, settled,
		 atomic_load(&b->shm->exhausted) ? "exhausted" : "time");
	return request_answer(b, line);
}

static enum step slice(struct bench *b, int dirfd)
{
	double ramp = RAMP_PART * b->cfg->slice, length, settled = 0;
	struct done done = { 0 };
	enum step step;

	b->turn++;
	step = window_run(b, ramp, b->cfg->slice - ramp, &length);
	if (step == STEP_OK && length > 0)
		done = add_up(b, length);
	if (step == STEP_OK && b->cfg->settle)
		step = settle(b, dirfd, &settled);
	return step ? step : answer(b, &done, settled);
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
