/* SPDX-License-Identifier: GPL-2.0-only */
/* Which code a window's instructions are of: exact counts, by translated blocks. */
#ifndef FSCALE_SIM_CODE_H
#define FSCALE_SIM_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "parameters.h"

/* Different blocks of a phase; what comes after them is counted together. */
#define CODE_BLOCKS (1u << 16)

/* What translated code adds instructions to, one for each vCPU. */
struct code_counters {
	uint64_t block[CODE_BLOCKS];
};

/* A phase begins: nothing is translated. */
void code_reset(void);

/* Which block the one at `pc` is; any thread may ask. */
unsigned int code_block(uint64_t pc);

/* From now on vCPU `c` counts there. */
void code_count(unsigned int c, struct code_counters *counters);

/* vCPU `c`, in no block or said by itself: forget, or add up, what it has done since. */
void code_forget(unsigned int c);
void code_add(unsigned int c);

/* Print `"code":[["PC",N],...]`, the instructions of each block that was added; PC 0 is the rest. */
void code_print(FILE *file);

#endif
