/* SPDX-License-Identifier: GPL-2.0-only */
/* The most transferred lines, and the instructions that transfer them. */
#ifndef FSCALE_SIM_HOT_H
#define FSCALE_SIM_HOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "coherence.h"

/* An access: physical and virtual address of the data, address of the instruction. */
struct place {
	uint64_t virtual, physical, pc;
};

/* False without memory. */
bool hot_open(void);

/* Empty the tables. */
void hot_reset(void);
void hot_transfer(const struct place *place, const struct transfer *t, bool write);

/* An access took a word of another core (words.h), whether or not it had to take the line. */
void hot_word(const struct place *place);

/* A core has spun for so many cycles for what lies in line `number`, at `virtual`. */
void hot_spin(uint64_t number, uint64_t virtual, uint64_t cycles);

/* Print `"lines":[...],"pcs":[...],"lost":N`, at most `most` lines, by stall and spinning. */
void hot_print(unsigned int most, FILE *file);

#endif
