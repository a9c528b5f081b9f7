// SPDX-License-Identifier: GPL-2.0-only
#include "turns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "barrier.h"
#include "stint.h"

/* The first part of a slice is not counted: caches fill again after the other side's turn. */
#define RAMP_PART 0.1

static int turn_failed(struct run *run, const char *call, int error)
{
	snprintf(run->crew.error, sizeof(run->crew.error), "%s: %s", call, strerror(error));
	return -1;
}

/* Write back all file systems, and set *ns to how long that took. */
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

/* Add up the stints of a turn that counts from begin_ns on, and print the sums. */
static void enter(struct run *run, uint64_t begin_ns, uint64_t end_ns, uint64_t settled_ns)
{
	struct phase *all = &run->phase[0];
	unsigned long ops = 0;
	double seconds = 0, parts = 0;
	uint64_t cpu_ns = 0, ns;
	char line[128];
	unsigned int id;

	for (id = 0; id < run->options.workers; id++) {
		const struct stint *stint = &run->state->worker[id].stint;

		seconds += stint_seconds(stint, begin_ns, &parts);
		ops += stint->ops;
		run->bytes += stint->bytes;
		cpu_ns += stint->cpu_ns;
	}
	/* A worker's time on average for its part of the operations, however long one of them is. */
	seconds /= run->options.workers;
	if (ops)
		seconds *= (double)ops / ((double)ops + parts);
	ns = seconds > 0 ? (uint64_t)(seconds * 1e9) : end_ns - begin_ns;
	if (!all->start_ns)
		all->start_ns = begin_ns;
	all->end_ns = end_ns;
	all->ns += ns;
	all->ops += ops;
	snprintf(line, sizeof(line), "turn %lu %.9f %.9f %.9f time", ops, (double)ns / 1e9,
		 (double)cpu_ns / 1e9, (double)settled_ns / 1e9);
	print_line(line);
}

static int turn(struct run *run, int barrier)
{
	long slice = (long)(run->options.slice * 1e9), ramp = (long)(RAMP_PART * (double)slice);
	struct state *state = run->state;
	uint64_t begin_ns, end_ns, settled_ns = 0;

	atomic_store(&state->halted, false);
	atomic_store(&state->counting, false);
	barrier_open(state, barrier);
	nap(ramp);
	begin_ns = now_ns();
	atomic_store(&state->counting, true);
	nap(slice - ramp);
	end_ns = now_ns();
	atomic_store(&state->halted, true);
	if (run_gather(run, barrier + 1) || run_at_work(run))
		return -1;
	if (run->options.settle && settle(run, &settled_ns))
		return -1;
	enter(run, begin_ns, end_ns, settled_ns);
	return 0;
}

int turns_take(struct run *run)
{
	char byte;
	ssize_t n;
	int barrier;

	for (barrier = BARRIER_FIRST; (n = read(STDIN_FILENO, &byte, 1)) > 0; barrier++)
		if (turn(run, barrier))
			return -1;
	return n ? turn_failed(run, "standard input", errno) : 0;
}
