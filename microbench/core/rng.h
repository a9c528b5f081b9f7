/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * xoshiro256** 1.0, seeded by splitmix64: D. Blackman and S. Vigna, "Scrambled
 * linear pseudorandom number generators", ACM TOMS 47(4), 2021.
 */
#ifndef FSCALE_RNG_H
#define FSCALE_RNG_H

#include <stdint.h>

struct rng {
	uint64_t s[4];
};

static inline uint64_t rng_splitmix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Streams of different (seed, stream) are unrelated. */
static inline void rng_seed(struct rng *rng, uint64_t seed, uint64_t stream)
{
	uint64_t state = seed;

	state = rng_splitmix(&state) ^ stream;
	for (int i = 0; i < 4; i++)
		rng->s[i] = rng_splitmix(&state);
}

static inline uint64_t rng_rotl(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

static inline uint64_t rng_next(struct rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = rng_rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rng_rotl(s[3], 45);
	return result;
}

#endif
