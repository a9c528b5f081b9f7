/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory that the parent and the workers share, and how they meet in it. */
#ifndef FSCALE_SHM_H
#define FSCALE_SHM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tally.h"

/* Two cache lines: adjacent-line prefetchers fetch them in pairs. */
#define LINE 128

enum phase {
	PHASE_ARMED,	/* workers spin at the start barrier */
	PHASE_RUN,	/* workers execute operations */
	PHASE_STOP,
};

/* How far the window has come while workers execute operations. */
enum timed {
	TIMED_NOT_YET,	/* it warms up */
	TIMED_NOW,
	TIMED_OVER,
};

enum command {
	CMD_NONE,
	CMD_SETUP,
	CMD_FILL,	/* make `stock` units available */
	CMD_SYNC,	/* worker 0 writes the file system back */
	CMD_PILOT,	/* run, under the set-up name */
	CMD_WINDOW,	/* run, under the run name */
	CMD_QUIT,
};

/*
 * A worker's turn in whole operations, which it times itself: what the parent cuts off at the edges
 * of a window is as much of an operation as the worker's phase happens to leave.
 */
struct stint {
	uint64_t before_ns;	/* when the last operation of the warm-up began; 0: there was none */
	uint64_t first_ns;	/* when it ended; from here on operations count */
	uint64_t last_ns;	/* when the last one ended, after PHASE_STOP */
	uint64_t cpu_ns;	/* the worker's own, from first_ns to last_ns */
	uint64_t ops;
};

/* Published by one worker. The counter has its own cache line. */
struct slot {
	_Alignas(LINE) _Atomic uint64_t ops;
	_Alignas(LINE) _Atomic uint32_t arrived;	/* last command done, or barrier reached */
	_Atomic uint32_t finished;			/* last run that came to its end */
	_Atomic uint32_t turn;				/* last command that it may begin; a futex */
	_Atomic pid_t tid;				/* of the worker, from its set-up on */
	uint64_t backlog;				/* arrivals of the window that did not begin */
	struct stint stint;
};

struct error_record {
	_Atomic int claimed;
	_Atomic int complete;
	bool unsupported;	/* the file system cannot do this at all */
	int worker;		/* -1: the parent */
	int code;		/* errno, or 0 */
	char call[32];
	char path[512];
	char message[640];
};

/* The counters of all workers at one moment. */
struct snapshot {
	uint64_t ns;		/* CLOCK_MONOTONIC, middle of the reading */
	uint64_t skew_ns;	/* how long the reading took */
	uint64_t ops[];
};

struct shared {
	_Alignas(LINE) _Atomic uint32_t phase;
	_Atomic uint32_t timed;				/* beside what is read with it */
	_Atomic uint64_t closed_ns;			/* when the window ended; known at PHASE_STOP */
	bool in_turns;					/* workers keep stints */
	_Alignas(LINE) _Atomic uint32_t command;	/* sequence << 4 | enum command; a futex */
	uint64_t stock;
	bool one_by_one;				/* so they set up, each at its turn */
	_Alignas(LINE) struct error_record error;
	_Alignas(LINE) _Atomic int exhausted;		/* `last` is valid: a worker ran out of stock */
	_Atomic int exhausting;
	struct snapshot *last;				/* taken by the first worker that ran out */
	_Alignas(LINE) struct tally tally;
	unsigned int workers;
	struct slot slots[];
};

struct shared *shm_create(unsigned int workers);
struct snapshot *snapshot_alloc(unsigned int workers);
void snapshot_take(const struct shared *shm, struct snapshot *snap);
uint64_t now_ns(void);

/*
 * End the window for all workers, once. The snapshot is taken before they
 * stop, so that it is exact for the others too.
 */
void shm_end_window(struct shared *shm);

/*
 * Record an error; the first one wins. `code` is an errno, 0 where no system
 * call failed. `what` replaces the text of the errno where it is not NULL.
 */
void error_record(struct error_record *error, int worker, const char *call, const char *dir,
		  const char *path, int code, const char *what);

#endif
