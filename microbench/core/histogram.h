/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A histogram of ticks (ticks.h) in memory of a fixed size: buckets of one tick up to 2,048, and from
 * there on 1,024 of the same width in each power of two, so that a bucket is known to 0.1% (as in
 * HdrHistogram with three digits).
 */
#ifndef FSCALE_HISTOGRAM_H
#define FSCALE_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

#define HISTOGRAM_BITS 10	/* of a power of two */
#define HISTOGRAM_MAX ((1ull << 39) - 1)	/* minutes: more than the parent waits for an operation */
#define HISTOGRAM_BUCKETS (30u << HISTOGRAM_BITS)

static inline uint32_t histogram_bucket(uint64_t ticks)
{
	uint32_t shift;

	if (ticks < 2u << HISTOGRAM_BITS)
		return (uint32_t)ticks;
	ticks = ticks < HISTOGRAM_MAX ? ticks : HISTOGRAM_MAX;
	shift = 63 - HISTOGRAM_BITS - (uint32_t)__builtin_clzll(ticks);
	return (shift << HISTOGRAM_BITS) + (uint32_t)(ticks >> shift);
}

/* The least ticks of a bucket. */
static inline uint64_t histogram_least(uint32_t bucket)
{
	uint32_t shift = bucket >> HISTOGRAM_BITS;

	if (shift < 2)
		return bucket;
	shift--;
	return (uint64_t)(bucket - (shift << HISTOGRAM_BITS)) << shift;
}

/*
 * Ticks that are entered together. Entered one by one, each would wait for its counter, which the
 * operation has driven out of the cache.
 */
#define NOTES 128

struct notes {
	uint32_t count;
	uint64_t ticks[NOTES];
};

static inline void histogram_enter(uint64_t *histogram, struct notes *notes)
{
	for (uint32_t i = 0; i < notes->count; i++)
		histogram[histogram_bucket(notes->ticks[i])]++;
	notes->count = 0;
}

/* Returns whether there was no room, so that all have been entered. */
static inline bool histogram_note(uint64_t *histogram, struct notes *notes, uint64_t ticks)
{
	notes->ticks[notes->count++] = ticks;
	if (__builtin_expect(notes->count < NOTES, 1))
		return false;
	histogram_enter(histogram, notes);
	return true;
}

#endif
