/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An open loop: operations arrive at times of their own, whether or not those before have ended. A
 * worker begins each at its time or as soon afterwards as it is free, and none is left out.
 */
#ifndef FSCALE_PACE_H
#define FSCALE_PACE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "rng.h"
#include "shm.h"

/* Random numbers of arrivals: streams beyond those of the workers' operations. */
#define PACE_STREAM 0x100000000u
/* The kernel wakes a sleeper tens of microseconds late, which would be a latency. */
#define PACE_SPIN_NS 100000u

/* Poisson: gaps are exponential, as between requests of many independent clients. */
enum arrival { ARRIVAL_POISSON, ARRIVAL_FIXED };

/* The arrivals of one worker, in nanoseconds. */
struct pace {
	double gap;		/* the mean between two arrivals; 0: a closed loop, without arrivals */
	enum arrival arrival;
	uint64_t spin;		/* how long before an arrival a sleep ends */
	struct rng rng;
	uint64_t start;		/* CLOCK_MONOTONIC */
	double since;		/* from the start to the next arrival */
	uint64_t next;		/* that arrival, CLOCK_MONOTONIC: the intended start of an operation */
};

/* `rate` per second; 0: a closed loop. A worker that shares its CPU sleeps only and does not spin. */
static inline void pace_init(struct pace *pace, uint64_t rate, enum arrival arrival,
			     uint64_t seed, unsigned int id, bool shares_cpu)
{
	*pace = (struct pace){
		.gap = rate ? 1e9 / (double)rate : 0,
		.arrival = arrival,
		.spin = shares_cpu ? 0 : PACE_SPIN_NS,
	};
	rng_seed(&pace->rng, seed, PACE_STREAM + id);
}

/* In (0, 1]. */
static inline double pace_uniform(struct pace *pace)
{
	return (double)((rng_next(&pace->rng) >> 11) + 1) * 0x1p-53;
}

/* The operation of this arrival is over. */
static inline void pace_next(struct pace *pace)
{
	pace->since += pace->arrival == ARRIVAL_FIXED ? pace->gap :
							-log(pace_uniform(pace)) * pace->gap;
	pace->next = pace->start + (uint64_t)pace->since;
}

/* Arrivals begin at `now`; they continue the random numbers of those before. */
static inline void pace_begin(struct pace *pace, uint64_t now)
{
	pace->start = now;
	pace->since = 0;
	/* Workers of a fixed rate do not all begin at the same moment. */
	if (pace->arrival == ARRIVAL_FIXED)
		pace->since = -pace_uniform(pace) * pace->gap;
	pace_next(pace);
}

/* Arrivals begin now, in the thread that waits for them. */
void pace_start(struct pace *pace);
/* Wait for the next arrival; false if the window ends before. */
bool pace_await(const struct pace *pace, const struct shared *shm);
/* Wait for the end of the window and count the arrivals before it of which no operation began. */
uint64_t pace_backlog(struct pace *pace, const struct shared *shm);

#endif
