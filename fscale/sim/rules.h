/* SPDX-License-Identifier: GPL-2.0-only */
/* Free lines: transfers of some addresses, or by some instructions, cost nothing. */
#ifndef FSCALE_SIM_RULES_H
#define FSCALE_SIM_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_RULES 256

/*
 * From now on the rules of `group` hold: lines GROUP:KIND:LOW-HIGH of the file at `path`, KIND `va`
 * (of data) or `pc` (of instructions), addresses with 0x, HIGH excluded. Group 0 has none and needs
 * no file. False where the file cannot be read, is malformed or has too many; then `why` says so.
 */
bool rules_begin(const char *path, uint32_t group, char *why, size_t size);

/* Whether a transfer of `virtual` by the instruction at `pc` is free. */
bool rules_free(uint64_t virtual, uint64_t pc);

#endif
