/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Clocks of the vCPUs, and who may run. In ordered and detailed mode one vCPU
 * runs at a time: the one with the smallest clock, until it is a quantum ahead of
 * the second smallest. Every vCPU is a thread, and no decision depends on how
 * fast the host runs it: all wait for the one whose turn it is.
 *
 * A thread that sleeps on a condition (an idle vCPU, or one that waits until the
 * others leave translated code) reports it, and so does the thread that wakes it:
 * from then on its clock counts, even though its thread has not run yet.
 */
#ifndef FSCALE_SIM_SCHEDULE_H
#define FSCALE_SIM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "parameters.h"

enum mode { MODE_FAST, MODE_ORDERED, MODE_DETAILED };

/* A vCPU's fuel runs up to this; then it has to ask for its turn. */
#define FUEL_OUT (1ull << 40)

/* Counters that translated code increments, one per vCPU. */
struct counters {
	uint64_t fuel;		/* cycles, from FUEL_OUT less the budget to FUEL_OUT */
	uint64_t instructions;
};

/* Cycles of a vCPU outside instructions and transfers. */
struct waits {
	uint64_t spin;		/* in PAUSE */
	uint64_t idle;
};

void schedule_open(const struct parameters *p);

/* The calling thread is vCPU `c`. */
void schedule_attach(unsigned int c);

/* Set the counters of `c` while no vCPU executes translated code. False if `c` has no thread. */
bool schedule_count(unsigned int c, struct counters *counters);

/* Fuel is out: returns when it is this vCPU's turn, with fuel. */
void schedule_turn(unsigned int c);

/* Cycles since the clocks were first set. */
uint64_t schedule_clock(unsigned int c);
struct waits schedule_waits(unsigned int c);
uint64_t schedule_instructions(unsigned int c);
/* The clock that none is behind, and whose turn it is, or -1; any thread may ask. */
uint64_t schedule_now(void);
int schedule_runner(void);
/* How often another vCPU got its turn. */
uint64_t schedule_switches(void);
enum mode schedule_mode(void);

/* The vCPU whose turn it is waits for a transfer. */
void schedule_stall(unsigned int c, uint64_t cycles);

/*
 * It is in PAUSE and what it looks at has not changed: pass over it for
 * `park` cycles, unless schedule_unpark() says from when on it may look again.
 */
void schedule_park(unsigned int c);
bool schedule_parked(unsigned int c);
void schedule_unpark(unsigned int c, uint64_t clock);
/* It has moved so many bytes in a string instruction. */
void schedule_string(unsigned int c, uint64_t bytes);
/* What PAUSE itself costs. */
void schedule_spin(unsigned int c, uint64_t cycles);

/* No vCPU is in translated code: go over to a mode; clocks start apart by up to `skew` cycles. */
void schedule_set_mode(enum mode mode, uint64_t seed);

/* The calling thread, a vCPU or the main loop, is about to sleep on `condition`. */
void schedule_sleep(const void *condition);
/* Whether the calling vCPU's next sleep is because it is idle. */
void schedule_idle(unsigned int c, bool idle);
/* Who sleeps on `condition` (`all`, or the first) is woken by the calling thread. */
void schedule_wake(const void *condition, bool all);

/* The calling thread does not sleep any more; a condition may let it go for no reason. */
void schedule_awake(void);

/* The guest's time in nanoseconds, `host` being the host's. */
uint64_t schedule_time(uint64_t host);

/*
 * The main loop, which fires the guest's timers, sleeps until the guest's time is
 * `deadline`, in ns, or for ever (UINT64_MAX). `notify` is called, by any thread,
 * when that time has come; true where it has come at once.
 */
bool schedule_loop_sleeps(uint64_t deadline, void (*notify)(void));
void schedule_loop_awake(void);

#endif
