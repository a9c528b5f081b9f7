/* SPDX-License-Identifier: GPL-2.0-only */
/* Exact instruction counts of a window, by translated block. */
#ifndef FSCALE_SIM_CODE_H
#define FSCALE_SIM_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "parameters.h"

/* Blocks of a phase that have counts of their own; later ones share one count. */
#define CODE_BLOCKS (1u << 16)

/* Instruction counters that translated code increments, one per vCPU. */
struct code_counters {
	uint64_t block[CODE_BLOCKS];
};

/* A phase begins: nothing is translated. */
void code_reset(void);

/* The number of the block at `pc`. Thread-safe. */
unsigned int code_block(uint64_t pc);

/* Set the counters of vCPU `c`. */
void code_count(unsigned int c, struct code_counters *counters);

/* vCPU `c`, in no block or said by itself: forget, or add up, what it has done since. */
void code_forget(unsigned int c);
void code_add(unsigned int c);

/* Print `"code":[["PC",N],...]`, the instructions of each block that was added; PC 0 is the rest. */
void code_print(FILE *file);

#endif
