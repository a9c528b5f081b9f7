/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FSCALE_CPULIST_H
#define FSCALE_CPULIST_H

#include <stdbool.h>

/* CPU numbers are below this. */
#define CPU_LIST_MAX 65536

/*
 * Parse a list such as "0,2-5" into *cpus (allocated), in the order given.
 * Returns how many there are, or -1 where the text is not such a list or
 * names a CPU twice.
 */
int cpulist_parse(const char *text, int **cpus);

/* Whether the kernel lists the CPU as online. */
bool cpu_online(int cpu);

#endif
