/* SPDX-License-Identifier: GPL-2.0-only */
/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): the same numbers from the same seed everywhere. */
#ifndef FSCALE_SIM_RANDOM_H
#define FSCALE_SIM_RANDOM_H

#include <stdint.h>

struct random {
	uint64_t state;
};

static inline struct random random_from(uint64_t seed)
{
	return (struct random){ seed };
}

static inline uint64_t random_next(struct random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* A number below `bound`; a bias of bound / 2^64 does not matter here. */
static inline uint64_t random_below(struct random *r, uint64_t bound)
{
	return random_next(r) % bound;
}

#endif
