/* SPDX-License-Identifier: GPL-2.0-only */
/* Windows: what all vCPUs did in one. */
#ifndef FSCALE_SIM_STATISTICS_H
#define FSCALE_SIM_STATISTICS_H

#include <stdint.h>
#include <stdio.h>

#include "parameters.h"

/* What a window is of; the guest tells. */
struct labels {
	uint32_t point, seed, group;
};

void statistics_open(const struct parameters *p, FILE *out);

/* vCPU `c` has a worker: from now to the end of the phase it counts in the sums. */
void statistics_work(unsigned int c);
void statistics_op(unsigned int c);

/* A mode ends: prints the CPU time that the emulator took in it. */
void statistics_mode_ends(const struct labels *labels);

/* A phase begins: it has no window yet. Of the one before the code is told that its windows ran. */
void statistics_reset(void);

/* Said by vCPU `c`. The end of a window that has not begun is nothing. */
void statistics_begin(unsigned int c);
void statistics_end(unsigned int c, const struct labels *labels);

/* A line for who watches from outside: a guest that stands still does no more instructions. */
void statistics_progress(void);

#endif
