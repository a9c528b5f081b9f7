// SPDX-License-Identifier: GPL-2.0-only
#include "transfers.h"

#include <math.h>
#include <stdlib.h>

#include "chain.h"
#include "median.h"

#define ROUNDS 41	/* the median of so many bears an interrupt and a neighbour */

enum { FROM, TO, THIRD };

struct pair {
	struct chain chain;
	bool third;
	double hit[ROUNDS], dirty[ROUNDS], dirty_add[ROUNDS], upgrade[ROUNDS];
	double add_after_read[ROUNDS], clean[ROUNDS];
};

static double timed(void (*walk)(struct chain *chain), struct chain *chain)
{
	uint64_t before = now_ns();

	walk(chain);
	return (double)(now_ns() - before) / CHAIN_LINES;
}

/* Between two meetings one of the members does something and the others wait. */
static void step(struct member *m, unsigned int who, void (*walk)(struct chain *chain),
		 double *result)
{
	struct pair *pair = m->context;

	if (m->id == who) {
		double elapsed = timed(walk, &pair->chain);

		if (result)
			*result = elapsed;
	}
	team_meet(m);
}

static void rounds(struct member *m)
{
	struct pair *pair = m->context;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		step(m, FROM, chain_own, NULL);
		step(m, TO, chain_read, &pair->dirty[i]);
		step(m, TO, chain_read, &pair->hit[i]);
		/* Some machines hand a modified line over whole: now both have it in any case. */
		step(m, FROM, chain_read, NULL);
		step(m, TO, chain_add, &pair->upgrade[i]);
		step(m, FROM, chain_own, NULL);
		step(m, TO, chain_add, &pair->dirty_add[i]);
		step(m, FROM, chain_own, NULL);
		step(m, TO, chain_read, NULL);
		step(m, TO, chain_add, &pair->add_after_read[i]);
		if (!pair->third)
			continue;
		step(m, FROM, chain_own, NULL);
		step(m, THIRD, chain_read, NULL);
		step(m, TO, chain_read, &pair->clean[i]);
	}
}

int transfer_measure(int from, int to, int third, struct transfer *transfer, const char **call)
{
	const int cpus[] = { [FROM] = from, [TO] = to, [THIRD] = third };
	struct pair *pair = aligned_alloc(APART, sizeof(*pair));

	*call = "aligned_alloc";
	if (!pair)
		return -1;
	pair->third = third >= 0;
	chain_build(&pair->chain);
	if (team_run(cpus, pair->third ? 3 : 2, rounds, pair, call))
		return -1; /* threads that were started use the pair still */
	*transfer = (struct transfer){
		.hit = median(pair->hit, ROUNDS),
		.dirty = median(pair->dirty, ROUNDS),
		.dirty_add = median(pair->dirty_add, ROUNDS),
		.upgrade = median(pair->upgrade, ROUNDS),
		.add_after_read = median(pair->add_after_read, ROUNDS),
		.clean = pair->third ? median(pair->clean, ROUNDS) : NAN,
	};
	free(pair);
	return 0;
}
