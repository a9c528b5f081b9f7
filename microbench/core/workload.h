/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a workload is made of. A file in workloads/ has an inline function that does one operation,
 * a set-up, and a descriptor for each level of sharing; one of FxMark's workloads has its own file.
 * It keeps a worker's state in static variables that are PER_WORKER, for workers are processes or
 * threads. They run with DIR as their working directory.
 */
#ifndef FSCALE_WORKLOAD_H
#define FSCALE_WORKLOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "edge.h"
#include "histogram.h"
#include "pace.h"
#include "ticks.h"

enum outcome {
	OP_OK,
	OP_EXHAUSTED,	/* the stock is used up; ends the window for all workers */
	OP_FAILED,	/* recorded by worker_fail() or worker_unsupported() */
};

/* Processes, or threads of one process that share its descriptor table, or not even that. */
enum crew { CREW_PROCESSES, CREW_THREADS, CREW_THREADS_FILES };

/* A static variable of which each worker has its own. */
#define PER_WORKER __thread

enum mode { MODE_BUFFERED, MODE_DIRECT, MODE_DONTCACHE, MODES };

#define IN_MODE(mode) (1u << (mode))
#define DATA_MODES (IN_MODE(MODE_BUFFERED) | IN_MODE(MODE_DIRECT) | IN_MODE(MODE_DONTCACHE))

enum type { TYPE_DATA, TYPE_METADATA };
enum action { ACTION_READ, ACTION_WRITE };
enum sharing { SHARING_LOW, SHARING_MEDIUM, SHARING_HIGH };

/* An option of a workload: an integer, or one of `choices`, the first of which is the default. */
struct option_desc {
	const char *name;
	const char *help;
	const char *const *choices;
	long long value, min, max, multiple_of;
};

/* The options that all workloads have; choices are those of enum crew and enum arrival. */
enum common { COMMON_WORKERS, COMMON_RATE, COMMON_ARRIVAL, COMMON_OPTIONS };

extern const struct option_desc common_options[COMMON_OPTIONS];

union option_value {
	long long number;
	const char *text;
};

/* What a consuming workload uses up: one unit per operation. */
struct stock_desc {
	const char *unit;
	uint64_t bytes;		/* space that one unit takes; 0: `block` bytes */
	uint64_t inodes;	/* inodes that one unit takes */
};

/*
 * A steady state instead of a stock: this many units exist before the window, and each operation
 * adds one and removes the oldest, so that a window may be of any length.
 */
#define KEEP "keep"
#define KEEP_OPTION(units)							\
	{ .name = KEEP, .help = "steady state: keep this many " units "; each operation adds one " \
	  "and removes the oldest. 0: use up a stock", .max = 99999999 }

struct worker {
	unsigned int id;
	unsigned int workers;	/* without the background writer */
	int cpu;
	enum crew crew;
	enum mode mode;
	uint64_t seed;
	uint64_t next;		/* consuming workloads: the next unit */
	uint64_t stock;		/* and how many there are */
	bool steady;		/* `stock` units stay */
	const struct workload *workload;
	const union option_value *options;
	const char *dir;
	struct shared *shm;
	struct slot *slot;
	uint64_t *latencies;	/* a histogram (histogram.h) of ticks, or NULL */
	bool tsc;		/* the clock of the ticks (ticks.h) */
	struct pace pace;	/* when operations begin (pace.h); a background writer has none */
};

struct workload {
	const char *id, *title, *operation;
	const char *paper;		/* where it comes from, or NULL */
	enum type type;
	enum action action;
	enum sharing sharing;
	const char *contention;
	const char *setup_text;
	unsigned int min_cores;
	unsigned int modes;
	/*
	 * What an operation leaves for later (commits, write-back) would fall into the
	 * turns of another file system that is mounted beside this one: each turn
	 * ends with a syncfs().
	 */
	bool defers_work;
	/*
	 * What an operation frees (inodes) is freed after an RCU grace period, which no
	 * syncfs() waits for: there is a pause between such turns.
	 */
	bool defers_frees;
	bool named_only;		/* runs only where it is named: not one of FxMark's */
	bool control;			/* touches no file: shows what the machine itself gives */
	const char *mounts;		/* the file system of the kernel that it mounts itself, or NULL */
	const struct option_desc *options;	/* ends with an empty one */
	const char *batch;			/* the option that says how many come at once, or NULL */
	const struct stock_desc *stock;		/* NULL: it consumes nothing */

	/*
	 * In the parent, before it forks: open what all workers of a run in `dir` inherit; the call that
	 * failed, or NULL. The run is skipped if kernel_refuses() then.
	 */
	const char *(*inherit)(const char *dir);
	/* NULL, or untimed, by all workers at the same time; by one at a time before windows by count. */
	enum outcome (*setup)(struct worker *w);
	/*
	 * Untimed: make `stock` units available, which are no fewer than before:
	 * w->stock were, of which w->next are used up.
	 */
	enum outcome (*fill)(struct worker *w, uint64_t stock);
	/* Made by DEFINE_LOOPS. */
	enum outcome (*run)(struct worker *w);
	enum outcome (*run_latency)(struct worker *w);
	enum outcome (*run_open)(struct worker *w);
	enum outcome (*run_turn)(struct worker *w);
	enum outcome (*run_counted)(struct worker *w);
	/* The writer of a background variant. */
	enum outcome (*background_setup)(struct worker *w);
	enum outcome (*background_run)(struct worker *w);
};

extern const char *const mode_names[MODES];

/* Record that `call` failed with errno on `path` (relative to DIR, or NULL). */
enum outcome worker_fail(struct worker *w, const char *call, const char *path);
/* The same for a call that moved `done` of `wanted` bytes, or failed (-1). */
enum outcome worker_short(struct worker *w, const char *call, const char *path, long done,
			  long wanted);
/* The same where the file system cannot do what is asked: the run is skipped, not failed. */
enum outcome worker_unsupported(struct worker *w, const char *call, const char *path);
/* Whether errno says that the kernel has no such call or file system, or denies it to this user. */
bool kernel_refuses(void);

long long option_number(const struct worker *w, const char *name);
const char *option_text(const struct worker *w, const char *name);

/* Whether workers execute operations: from the start barrier to the end of the window. */
static inline bool may_run(const struct worker *w)
{
	return atomic_load_explicit(&w->shm->phase, memory_order_relaxed) == PHASE_RUN;
}

static inline uint64_t ops_done(const struct worker *w)
{
	return atomic_load_explicit(&w->slot->ops, memory_order_relaxed);
}

static inline void ops_publish(struct worker *w, uint64_t ops)
{
	atomic_store_explicit(&w->slot->ops, ops, memory_order_relaxed);
}

static inline enum timed timed(const struct worker *w)
{
	return atomic_load_explicit(&w->shm->timed, memory_order_relaxed);
}

/* Around the operations of a turn that count, in the worker. */
void stint_begin(struct worker *w);
void stint_end(struct worker *w);

/* The plain loop: the operation and one relaxed store. */
#define DEFINE_LOOP(name, op)							\
static enum outcome name(struct worker *w)					\
{										\
	uint64_t ops = ops_done(w);						\
	enum outcome outcome = OP_OK;						\
										\
	while (may_run(w)) {							\
		outcome = op(w);						\
		if (__builtin_expect(outcome != OP_OK, 0))			\
			break;							\
		ops_publish(w, ++ops);						\
	}									\
	return outcome;								\
}

/*
 * Defines op_run(), op_run_latency(), which reads the clock between operations, op_run_open(), whose
 * operations arrive at times of their own (pace.h), op_run_turn(), which also times the whole
 * operations of its turn, and op_run_counted(), which counts each among those of all workers. A
 * latency is the time from the end of an operation to the end of the next: that takes one reading per
 * operation, and a worker has always one in progress. In an open loop it is the time from the
 * operation's arrival to its end. In a turn latencies are those of the stint, with the operation that
 * is under way when the turn closes: long ones are often that one, and would be missing.
 */
#define DEFINE_LOOPS(op)							\
DEFINE_LOOP(op##_run, op)							\
static inline enum outcome op##_run_timed(struct worker *w, bool in_turn)	\
{										\
	uint64_t ops = ops_done(w), before, after;				\
	enum outcome outcome = OP_OK;						\
	struct notes notes = { 0 };						\
	const bool tsc = w->tsc;						\
										\
	for (before = ticks_now(tsc); may_run(w); before = after) {		\
		outcome = op(w);						\
		if (__builtin_expect(outcome != OP_OK, 0))			\
			break;							\
		after = ticks_now(tsc);						\
		ops_publish(w, ++ops);						\
		if ((in_turn || timed(w) == TIMED_NOW) &&			\
		    histogram_note(w->latencies, &notes, after - before))	\
			after = ticks_now(tsc);					\
	}									\
	histogram_enter(w->latencies, &notes);					\
	return outcome;								\
}										\
static enum outcome op##_run_latency(struct worker *w)				\
{										\
	return op##_run_timed(w, false);					\
}										\
static enum outcome op##_run_open(struct worker *w)				\
{										\
	uint64_t ops = ops_done(w);						\
	enum outcome outcome = OP_OK;						\
	struct notes notes = { 0 };						\
										\
	for (pace_start(&w->pace); pace_await(&w->pace, w->shm); pace_next(&w->pace)) { \
		outcome = op(w);						\
		if (__builtin_expect(outcome != OP_OK, 0))			\
			break;							\
		ops_publish(w, ++ops);						\
		if (w->latencies && timed(w) == TIMED_NOW)			\
			histogram_note(w->latencies, &notes, now_ns() - w->pace.next); \
	}									\
	histogram_enter(w->latencies, &notes);					\
	return outcome;								\
}										\
static enum outcome op##_run_turn(struct worker *w)				\
{										\
	uint64_t ops = ops_done(w);						\
	enum outcome outcome = OP_OK;						\
										\
	w->slot->stint = (struct stint){ 0 };					\
	while (may_run(w) && timed(w) == TIMED_NOT_YET) {			\
		w->slot->stint.before_ns = now_ns();				\
		outcome = op(w);						\
		if (__builtin_expect(outcome != OP_OK, 0))			\
			return outcome;						\
		ops_publish(w, ++ops);						\
	}									\
	stint_begin(w);								\
	outcome = w->latencies ? op##_run_timed(w, true) : op##_run(w);		\
	stint_end(w);								\
	return outcome;								\
}										\
static enum outcome op##_run_counted(struct worker *w)				\
{										\
	uint64_t ops = ops_done(w);						\
	enum outcome outcome = OP_OK;						\
										\
	edge_start(w->shm, w->workers);						\
	while (may_run(w)) {							\
		outcome = op(w);						\
		if (__builtin_expect(outcome != OP_OK, 0))			\
			break;							\
		ops_publish(w, ++ops);						\
		edge_operation(w->shm, w->workers);				\
	}									\
	return outcome;								\
}

/* What DEFINE_LOOPS(op) made, in a descriptor. */
#define LOOPS(op)								\
	.run = op##_run, .run_latency = op##_run_latency, .run_open = op##_run_open, \
	.run_turn = op##_run_turn, .run_counted = op##_run_counted

/*
 * Puts a file's descriptors where workload_find() and `--list` see them, in this order; the explicit
 * alignment keeps the compiler from leaving room between the files' arrays.
 */
#define REGISTER_WORKLOADS(...)							\
static const struct workload *const registered[]				\
	__attribute__((used, section("fscale_workloads"), aligned(sizeof(void *)))) = { __VA_ARGS__ }

/* All workloads, in the order of their ids; *count is set. */
const struct workload *const *workload_all(unsigned int *count);
const struct workload *workload_find(const char *id);

#endif
