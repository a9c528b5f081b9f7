/* SPDX-License-Identifier: GPL-2.0-only */
/* Small things that the load programs share: clock, random numbers, JSON, shared memory. */
#ifndef APPS_UTIL_H
#define APPS_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CACHE_LINE 128 /* two lines: adjacent lines are prefetched in pairs */

/* CLOCK_MONOTONIC, nanoseconds. */
uint64_t now_ns(void);

/* CPU time of this process, nanoseconds. */
uint64_t own_cpu_ns(void);

/* xorshift64*: quick, and good enough to draw files and mail boxes. State must not be 0. */
static inline uint64_t draw(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1dULL;
}

/* A well-mixed, non-zero state for stream number `stream` of `seed` (splitmix64). */
uint64_t draw_seed(uint64_t seed, uint64_t stream);

/* Uniform in 0 .. n-1. */
static inline uint64_t draw_below(uint64_t *state, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)draw(state) * n) >> 64);
}

/* Uniform in (0, 1]. */
static inline double draw_unit(uint64_t *state)
{
	return (double)((draw(state) >> 11) + 1) / (double)(1ULL << 53);
}

/* Print `text` as a JSON string. */
void json_string(FILE *out, const char *text);

/* Shared, zeroed memory that forked children see too, or exit 1. */
void *shared_alloc(size_t bytes);

#endif
