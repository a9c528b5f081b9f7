/* SPDX-License-Identifier: GPL-2.0-only */
/* One run: its state, how it fails, and what it came to. */
#ifndef FSCALE_BENCH_H
#define FSCALE_BENCH_H

#include <sys/types.h>

#include "accounting.h"
#include "config.h"
#include "shm.h"
#include "ticks.h"

enum step { STEP_OK, STEP_FAILED, STEP_INTERRUPTED };

enum end { END_TIME, END_EXHAUSTED, END_NO_SPACE, END_ERROR, END_INTERRUPTED };
enum status { STATUS_OK, STATUS_INVALID, STATUS_ERROR, STATUS_INTERRUPTED };
enum bound { BOUND_PILOT, BOUND_SPACE, BOUND_INODES, BOUND_MAXIMUM };

struct window {
	uint64_t start_ns;
	double seconds;
	enum end end;
	uint64_t *first;	/* each process's counter where the window begins */
	uint64_t *ops;		/* and what it did inside */
};

struct stock {
	uint64_t per_worker, wanted;
	uint64_t limit;		/* the least of the bounds */
	enum bound limit_bound, bound;
	double rate;		/* of the fastest worker in the pilot */
	unsigned int restocks;
};

struct result {
	enum status status;
	enum end end;
	char reason[1024];
	double seconds, setup_seconds, warmup_seconds;
	struct window *windows;
	unsigned int nwindows;
	double *interval_seconds;
	uint64_t *interval_ops;
	unsigned int nintervals;
	uint64_t *executed;	/* by each process */
	uint64_t backlog;	/* arrivals of the windows that did not begin */
	struct usage *usage;
	struct stock stock;
	uint64_t **latencies;		/* a histogram of each worker, of all windows */
	uint64_t counters[COUNTERS_MAX];	/* by how much they grew, as in the configuration */
};

/* How many operations of all workers took so long in a turn; little-endian, as it is written. */
struct turn_record {
	uint64_t turn, ns, count;
};

struct bench {
	const struct config *cfg;
	struct shared *shm;
	struct accounting *accounting;
	unsigned int processes;		/* workers, and the background writer after them */
	pid_t *pids;			/* 0: reaped */
	unsigned int alive;
	uint32_t sequence;
	uint64_t **latencies;		/* a histogram of each worker, of the present window */
	struct ticks ticks;		/* in which they are counted */
	uint64_t timed_ns;		/* when the present window began */
	uint64_t turn;			/* the present turn, from 1 */
	struct turn_record *records;	/* the latencies of the turns */
	size_t nrecords, room;
	struct result result;
};

/* Record that a call of the parent failed with errno. */
enum step bench_fail(struct bench *b, const char *call, const char *path);
/* Counts the operations of a worker (or of the background writer, the last id) in all windows. */
uint64_t result_ops(const struct result *r, unsigned int id);

#endif
