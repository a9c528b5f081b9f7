/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_TESTS_RANDOM_H
#define LANEFS_TESTS_RANDOM_H

#include <stdint.h>

static uint64_t random_state = 1;

/* splitmix64: the same numbers in each run. */
static inline uint64_t next_random(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* 0 to limit - 1 */
static inline unsigned int pick(unsigned int limit)
{
	return (unsigned int)(next_random() % limit);
}

#endif
