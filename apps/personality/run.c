// SPDX-License-Identifier: GPL-2.0-only
#include "run.h"

#include <stdio.h>

int run_gather(struct run *run, int barrier)
{
	struct crew *crew = &run->crew;
	unsigned int i, there;

	do {
		nap(NAP_NS);
		if (crew_look(crew))
			return -1;
		for (there = 0, i = 0; i < crew->size; i++)
			there += atomic_load(&run->state->worker[i].ready) >= barrier ||
				 !crew->pids[i];
	} while (there < crew->size);
	return 0;
}

void run_add_up(const struct run *run, unsigned long *ops, unsigned long *bytes)
{
	unsigned int i;

	*ops = *bytes = 0;
	for (i = 0; i < run->options.workers; i++) {
		*ops += atomic_load(&run->state->worker[i].ops);
		*bytes += atomic_load(&run->state->worker[i].bytes);
	}
}

int run_at_work(void *context)
{
	struct run *run = context;
	struct crew *crew = &run->crew;

	if (crew_look(crew))
		return -1;
	if (crew->ended) {
		snprintf(crew->error, sizeof(crew->error), "a worker ended before the window did");
		return -1;
	}
	return 0;
}
