/* SPDX-License-Identifier: GPL-2.0-only */
/* The frame of a personality: worker processes, one per CPU, that meet at barriers. */
#ifndef APPS_PERSONALITY_H
#define APPS_PERSONALITY_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../common/util.h"

#define MAX_PHASES 4

struct options {
	const char **dirs; /* one per partition; worker w uses dirs[w % ndirs] */
	unsigned int ndirs;
	unsigned int workers;
	const int *cpus;
	unsigned int files;   /* of each file set */
	unsigned int width;   /* entries of a directory */
	unsigned int size;    /* mean bytes of a file */
	unsigned int append;  /* mean bytes of an append */
	bool shared;          /* one file set for all workers, else one per worker */
	uint64_t seed;
	double warmup, duration;
	double slice;         /* seconds of a turn; 0: one window */
	bool settle;          /* syncfs() after each turn */
};

/*
 * A worker's turn in whole rounds, which it times itself: how much of a round the parent would cut
 * off at its edges depends on how rounds happen to fit into a turn.
 */
struct stint {
	uint64_t before_ns;       /* when the last round of the warm-up began; 0: there was none */
	unsigned long before_ops; /* done until then */
	uint64_t first_ns;        /* when it ended; from here on operations count */
	unsigned long first_ops;
	uint64_t last_ns;         /* when the last round ended */
	uint64_t cpu_ns;          /* the worker's own, from first_ns to last_ns */
	unsigned long ops, bytes; /* the same */
};

struct worker {
	_Alignas(CACHE_LINE) atomic_ulong ops; /* counted by the parent at the window's edges */
	atomic_ulong bytes;
	atomic_ulong loops;
	atomic_int ready;           /* the barrier that it waits at, from 1 */
	atomic_ullong ended_ns[MAX_PHASES];
	struct stint stint;
	char error[256];            /* empty: none */
};

/* The set-up of the file set uses barrier 1; each phase or turn uses one from 2 on. */
enum barrier { BARRIER_FIRST = 2, BARRIER_STOP = INT_MAX };

struct state {
	const struct options *options;
	_Alignas(CACHE_LINE) atomic_int barrier; /* the last barrier that is open; BARRIER_STOP ends all */
	atomic_bool halted;                   /* timed: to the next barrier after this round */
	atomic_bool counting;                 /* the warm-up of this turn is over */
	void *files;                          /* the personality's own shared memory */
	struct worker worker[];
};

struct personality {
	const char *name;
	unsigned int phases; /* 1: timed by --duration; more: each runs to its end */
	const char *const *phase_names;
	/* Before the workers are forked; -1 with a message printed. */
	int (*prepare)(struct state *state);
	/* In the worker, before its first barrier. -1 with worker->error. */
	int (*setup)(struct state *state, unsigned int id, void **own);
	/* One round of a timed personality, or a whole phase. -1 with worker->error. */
	int (*run)(struct state *state, unsigned int id, void *own, unsigned int phase);
};

extern const struct personality varmail, fileserver, catd;

/* Set the worker's error from `call`, `path` and errno; returns -1. */
int failed(struct worker *worker, const char *call, const char *path);

static inline void did(struct worker *worker, unsigned long ops)
{
	atomic_store_explicit(&worker->ops,
			      atomic_load_explicit(&worker->ops, memory_order_relaxed) + ops,
			      memory_order_relaxed);
}

static inline void moved(struct worker *worker, unsigned long bytes)
{
	atomic_store_explicit(&worker->bytes,
			      atomic_load_explicit(&worker->bytes, memory_order_relaxed) + bytes,
			      memory_order_relaxed);
}

#endif
