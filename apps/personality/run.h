/* SPDX-License-Identifier: GPL-2.0-only */
/* A run as the parent sees it. */
#ifndef APPS_RUN_H
#define APPS_RUN_H

#include "../common/crew.h"
#include "personality.h"

#define NAP_NS 500000L

/* The counts of a phase. For turns, `ns` is their sum, and the times are of the first and the last. */
struct phase {
	uint64_t start_ns, end_ns, ns;
	unsigned long ops;
};

struct run {
	struct crew crew;
	struct options options;
	const struct personality *personality;
	struct state *state;
	struct phase phase[MAX_PHASES];
	unsigned long bytes;
};

/* Wait until all workers have reached `barrier` or have ended; -1 with an error. */
int run_gather(struct run *run, int barrier);

/* Sum up the operations and bytes of all workers since they began. */
void run_add_up(const struct run *run, unsigned long *ops, unsigned long *bytes);

/* -1 with an error when a worker has ended; gets a struct run, as crew_until() wants it. */
int run_at_work(void *context);

#endif
