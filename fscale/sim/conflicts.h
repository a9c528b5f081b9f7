/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Conflicts of two calls, of which the first vCPU executes one and the second the other: cache lines
 * that one of the calls writes and the other one accesses, however their executions overlap.
 */
#ifndef FSCALE_SIM_CONFLICTS_H
#define FSCALE_SIM_CONFLICTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

void conflicts_open(FILE *out);

/* vCPU `c` enters or leaves its call. */
void conflicts_call(unsigned int c, bool inside);

bool conflicts_inside(unsigned int c);

/* vCPU `c`, inside its call, accesses `size` bytes with the instruction at `pc`. */
void conflicts_access(unsigned int c, uint64_t virtual, unsigned int size, bool write, uint64_t pc);

/* The calls since the last time were those of a pair: prints their conflicts. Said by a vCPU. */
void conflicts_pair(uint32_t number);

#endif
