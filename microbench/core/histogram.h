/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A histogram of nanoseconds in memory of a fixed size: buckets of one nanosecond up to 2,048, and
 * from there on 1,024 of the same width in each power of two, so that a bucket is known to 0.1% (as
 * in HdrHistogram with three digits).
 */
#ifndef FSCALE_HISTOGRAM_H
#define FSCALE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BITS 10	/* of a power of two */
#define HISTOGRAM_MAX ((1ull << 37) - 1)	/* 137 s: more than the parent waits for an operation */
#define HISTOGRAM_BUCKETS (28u << HISTOGRAM_BITS)

static inline uint32_t histogram_bucket(uint64_t ns)
{
	uint32_t shift;

	if (ns < 2u << HISTOGRAM_BITS)
		return (uint32_t)ns;
	ns = ns < HISTOGRAM_MAX ? ns : HISTOGRAM_MAX;
	shift = 63 - HISTOGRAM_BITS - (uint32_t)__builtin_clzll(ns);
	return (shift << HISTOGRAM_BITS) + (uint32_t)(ns >> shift);
}

/* The least nanoseconds of a bucket. */
static inline uint64_t histogram_least(uint32_t bucket)
{
	uint32_t shift = bucket >> HISTOGRAM_BITS;

	if (shift < 2)
		return bucket;
	shift--;
	return (uint64_t)(bucket - (shift << HISTOGRAM_BITS)) << shift;
}

#endif
