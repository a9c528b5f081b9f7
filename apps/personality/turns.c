// SPDX-License-Identifier: GPL-2.0-only
#include "turns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gate.h"

/* The first part of a slice fills caches that the other side had, and is not counted. */
#define RAMP_PART 0.1

struct edge {
	uint64_t ns, cpu_ns;
	unsigned long ops, bytes;
};

static int turn_failed(struct run *run, const char *call, int error)
{
	snprintf(run->crew.error, sizeof(run->crew.error), "%s: %s", call, strerror(error));
	return -1;
}

static int read_edge(struct run *run, struct edge *edge)
{
	struct timespec spent;
	clockid_t clock;
	unsigned int i;
	int error;

	run_add_up(run, &edge->ops, &edge->bytes);
	edge->ns = now_ns();
	edge->cpu_ns = 0;
	for (i = 0; i < run->crew.size; i++) {
		/* One that ended is found by run_at_work(). */
		if (!run->crew.pids[i])
			continue;
		error = clock_getcpuclockid(run->crew.pids[i], &clock);
		if (!error && clock_gettime(clock, &spent))
			error = errno;
		if (error)
			return turn_failed(run, "the CPU clock of a worker", error);
		edge->cpu_ns += (uint64_t)spent.tv_sec * 1000000000u + (uint64_t)spent.tv_nsec;
	}
	return 0;
}

/* Write out what a turn has left, on all file systems; *ns long. */
static int settle(struct run *run, uint64_t *ns)
{
	uint64_t from = now_ns();
	unsigned int i;
	int fd, error;

	for (i = 0; i < run->options.ndirs; i++) {
		fd = open(run->options.dirs[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return turn_failed(run, run->options.dirs[i], errno);
		error = syncfs(fd) ? errno : 0;
		close(fd);
		if (error)
			return turn_failed(run, "syncfs", error);
	}
	*ns = now_ns() - from;
	return 0;
}

static void enter(struct run *run, const struct edge *from, const struct edge *to)
{
	struct phase *all = &run->phase[0];

	if (!all->start_ns)
		all->start_ns = from->ns;
	all->end_ns = to->ns;
	all->ns += to->ns - from->ns;
	all->ops += to->ops - from->ops;
	run->bytes += to->bytes - from->bytes;
}

static int turn(struct run *run, int gate)
{
	long slice = (long)(run->options.slice * 1e9), ramp = (long)(RAMP_PART * (double)slice);
	struct state *state = run->state;
	struct edge from, to;
	uint64_t settled = 0;
	char line[128];

	atomic_store(&state->halted, false);
	gate_open(state, gate);
	nap(ramp);
	if (read_edge(run, &from))
		return -1;
	nap(slice - ramp);
	if (read_edge(run, &to))
		return -1;
	atomic_store(&state->halted, true);
	if (run_gather(run, gate + 1) || run_at_work(run))
		return -1;
	if (run->options.settle && settle(run, &settled))
		return -1;
	enter(run, &from, &to);
	snprintf(line, sizeof(line), "turn %lu %.9f %.9f %.9f time", to.ops - from.ops,
		 (double)(to.ns - from.ns) / 1e9, (double)(to.cpu_ns - from.cpu_ns) / 1e9,
		 (double)settled / 1e9);
	say(line);
	return 0;
}

int turns_take(struct run *run)
{
	char byte;
	ssize_t n;
	int gate;

	for (gate = GATE_FIRST; (n = read(STDIN_FILENO, &byte, 1)) > 0; gate++)
		if (turn(run, gate))
			return -1;
	return n ? turn_failed(run, "standard input", errno) : 0;
}
