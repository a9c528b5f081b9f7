/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The clock of latencies. Operations of half a microsecond are timed one after another, so it has
 * to be cheaper than a call into the vDSO: the time-stamp counter where the kernel itself keeps
 * time by it, otherwise CLOCK_MONOTONIC.
 */
#ifndef FSCALE_TICKS_H
#define FSCALE_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "shm.h"

#ifdef __x86_64__
#include <x86intrin.h>
#endif

/* Two readings at one moment, from which the length of a tick follows later. */
struct ticks {
	bool tsc;
	uint64_t ticks, ns;
};

static inline uint64_t ticks_now(bool tsc)
{
#ifdef __x86_64__
	if (tsc)
		return __rdtsc();
#endif
	(void)tsc;
	return now_ns();
}

struct ticks ticks_start(void);
/* Nanoseconds per tick, from what has passed since the start. */
double ticks_length(const struct ticks *start);

#endif
