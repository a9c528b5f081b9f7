/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads that are pinned to CPUs and meet at barriers without sleeping. */
#ifndef FSCALE_CALIBRATE_TEAM_H
#define FSCALE_CALIBRATE_TEAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Two cache lines, so that no prefetcher of pairs of lines joins what is meant to be apart. */
#define APART 128

struct team {
	const int *cpus;
	unsigned int count;
	_Alignas(APART) atomic_uint arrived;
	_Alignas(APART) atomic_uint round;
};

struct member {
	struct team *team;
	unsigned int id;
	void *context;
};

typedef void (*team_work)(struct member *m);

uint64_t now_ns(void);

/*
 * Run `work` in one thread on each of the CPUs and wait for all of them.
 * Returns 0, or -1 with errno and *call set to what failed.
 */
int team_run(const int *cpus, unsigned int count, team_work work, void *context, const char **call);

/* Wait until all members are here. */
void team_meet(struct member *m);

#endif
