/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_TOOLS_PARALLEL_H
#define LANEFS_TOOLS_PARALLEL_H

#include <stddef.h>

/*
 * Calls @work for each of 0 to @count - 1 from at most @threads threads, and returns when all calls
 * have. In whatever order, but with one thread in ascending order. Where the system gives fewer
 * threads, those do it.
 */
void parallel(unsigned int threads, size_t count, void (*work)(void *context, size_t number),
	      void *context);

#endif
