/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line, validated. */
#ifndef FSCALE_CONFIG_H
#define FSCALE_CONFIG_H

#include "workload.h"

#define EXIT_GOOD 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_INTERRUPTED 3
#define EXIT_SKIPPED 77

#define OPTIONS_MAX 8
#define COUNTERS_MAX 8
/* The largest --max-stock; names (names.h) have room for forty such stocks. */
#define STOCK_MAX 99999999
/* The largest --workers-per-cpu. */
#define WORKERS_PER_CPU_MAX 256

/* Numbers that a simulator receives before the windows. */
struct roi {
	uint32_t point, seed, free;
};

struct config {
	bool list;
	const struct workload *workload;
	const char *dir;		/* absolute */
	int *cpus;
	unsigned int ncpus;
	unsigned int workers_per_cpu;
	unsigned int workers;		/* on all CPUs but the background writer's */
	enum mode mode;
	double duration, warmup, min_window, interval;	/* seconds */
	double slice;			/* seconds; 0: one run of `duration` */
	bool settle;			/* syncfs() after each slice */
	uint64_t windows;		/* by count; 0: by time */
	uint64_t window_ops;		/* of all workers together, in each of them */
	uint64_t window_ns;		/* that each of them takes at least */
	uint64_t precision;		/* thousandths of the rate; 0: none of the windows is left out */
	struct roi roi;
	uint64_t seed;
	enum crew crew;
	uint64_t rate;			/* operations that arrive per second and worker; 0: a closed loop */
	enum arrival arrival;
	union option_value options[OPTIONS_MAX];
	uint64_t keep;			/* units of a steady state; 0: a stock is used up, if any */
	uint64_t max_stock;		/* units per worker */
	uint64_t space, inodes;		/* of all workers; 0: ask the file system */
	const char *cgroup;
	const char *latency;
	const char *counters[COUNTERS_MAX];
	unsigned int ncounters;
	int sync_read, sync_write;	/* -1: none */
};

/* Parse and check the command line; ends the process with EXIT_USAGE and a sentence where it is wrong. */
void config_parse(struct config *cfg, int argc, char **argv);

/* The CPU of a worker, or of the background writer, whose number follows those of the workers. */
int config_cpu(const struct config *cfg, unsigned int id);

/* End the process with EXIT_USAGE and a sentence. */
_Noreturn void usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
