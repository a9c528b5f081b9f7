/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_TOOLS_DIE_H
#define LANEFS_TOOLS_DIE_H

#include <stddef.h>

/* Prints "PROGRAM: MESSAGE" on standard error and exits with @code. */
__attribute__((noreturn, format(printf, 2, 3))) void die(int code, const char *format, ...);

/* The code that die() uses for what is no fault of the arguments: out of memory. */
extern int die_memory_code;

/* Zeroed memory, or the end of the program. */
__attribute__((malloc)) void *allocate(size_t count, size_t size);
void *reallocate(void *old, size_t count, size_t size);

#endif
