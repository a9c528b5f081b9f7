/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds where the kernel's memory lies: shared by memory.bpf.c and its loader. */
#ifndef FSCALE_MEMORY_H
#define FSCALE_MEMORY_H

#include "waits.h"

#define BASES 4096
#define SLOTS_PAGES 4 /* allocated for the slots of a pipe, which need 2.5 */

enum { DIRECT_MAP, PAGE_ARRAY };

struct base {
	unsigned long long kind, address;
};

#ifndef __bpf__
#include <stdbool.h>

/*
 * Set `direct_map` and `page_array` of `m`, whose page_bits and page_size are set. False, with both
 * 0, where this kernel does not tell: it lacks the events, or forbids large pipes.
 */
bool find_memory(struct memory *m);
#endif

#endif
