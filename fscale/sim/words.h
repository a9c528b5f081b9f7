/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which core has which word of four bytes, as if each lay in a line of its own. An access that
 * takes a word from another core does so in every layout; a line may also move for other words.
 */
#ifndef FSCALE_SIM_WORDS_H
#define FSCALE_SIM_WORDS_H

#include <stdbool.h>
#include <stdint.h>

/* For so many cores and lines; false without memory. */
bool words_open(unsigned int cores, uint64_t nlines);
void words_close(void);

/* No core has any word. */
void words_empty(void);

/*
 * Whether `core` has all that it needs to access `size` bytes from `virtual` on, in line `number`;
 * bytes beyond the line are left out.
 */
bool words_hit(uint64_t number, unsigned int core, uint64_t virtual, unsigned int size, bool write);

/*
 * The same access, which does not hit. Whether it takes a word from another core: one that it reads
 * and another has written, or one that it writes and another has.
 */
bool words_take(uint64_t number, unsigned int core, uint64_t virtual, unsigned int size,
		bool write);

#endif
