// SPDX-License-Identifier: GPL-2.0-only
/* xorshift128+ (Vigna 2017), seeded by splitmix64: the same numbers for the same seed. */
#include <string.h>

#include "model.h"

static uint64_t splitmix(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

void rng_seed(struct process *p, uint64_t seed, uint64_t stream)
{
	uint64_t state = seed * 1000003 + stream;

	p->rng[0] = splitmix(&state);
	p->rng[1] = splitmix(&state) | 1;
}

uint64_t rng_next(struct process *p)
{
	uint64_t x = p->rng[0];
	const uint64_t y = p->rng[1];

	p->rng[0] = y;
	x ^= x << 23;
	p->rng[1] = x ^ y ^ (x >> 17) ^ (y >> 26);
	return p->rng[1] + y;
}

uint32_t rng_below(struct process *p, uint32_t bound)
{
	return (uint32_t)((rng_next(p) >> 32) * bound >> 32);
}

bool rng_percent(struct process *p, unsigned int percent)
{
	return rng_below(p, 100) < percent;
}

void rng_fill(struct process *p, unsigned char *data, size_t length)
{
	while (length) {
		uint64_t word = rng_next(p);
		size_t n = length < sizeof(word) ? length : sizeof(word);

		memcpy(data, &word, n);
		data += n;
		length -= n;
	}
}
