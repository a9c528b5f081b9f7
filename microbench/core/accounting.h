/* SPDX-License-Identifier: GPL-2.0-only */
/* CPU time at the edges of a window: of the CPUs, of each worker, of the cgroup. */
#ifndef FSCALE_ACCOUNTING_H
#define FSCALE_ACCOUNTING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum cpu_state { CPU_USER, CPU_SYSTEM, CPU_IDLE, CPU_IOWAIT, CPU_IRQ, CPU_SOFTIRQ, CPU_STEAL, CPU_STATES };

struct worker_usage {
	uint64_t ns;			/* CPU time: exact of a process, to a tick of a thread */
	uint64_t user, system;		/* ticks; only their ratio is used */
	uint64_t voluntary, involuntary;
};

/* One reading, or the sum of differences of readings. */
struct usage {
	uint64_t cpu[CPU_STATES];	/* ticks, summed over the CPUs under test */
	uint64_t cgroup_us;
	struct worker_usage *workers;
};

struct accounting;

/*
 * Open what is read later, of workers by their process and thread. Returns NULL with errno and
 * *path set. `cgroup` may be NULL.
 */
struct accounting *accounting_open(const int *cpus, unsigned int ncpus, const pid_t *pids,
				   const pid_t *tids, unsigned int workers, const char *cgroup,
				   const char **path);
/* A reading with all counts zero, to be filled or summed into; NULL when out of memory. */
struct usage *usage_alloc(unsigned int workers);
/* Fill `usage` but for the workers' clocks; false with errno and *path set. */
bool accounting_read(const struct accounting *acc, struct usage *usage, const char **path);
/* Fill in the workers' clocks, which takes microseconds each; false with errno set. */
bool accounting_clocks(const struct accounting *acc, struct usage *usage);
/* sum += after - before */
void usage_add(struct usage *sum, const struct usage *before, const struct usage *after,
	       unsigned int workers);

#endif
