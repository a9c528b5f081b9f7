/* SPDX-License-Identifier: GPL-2.0-only */
/* The worker processes as the parent sees them. */
#ifndef FSCALE_CREW_H
#define FSCALE_CREW_H

#include "bench.h"
#include "events.h"

enum step crew_start(struct bench *b);
/*
 * Give a command, and return when all workers have executed it (CMD_PILOT,
 * CMD_WINDOW: when all are at the start barrier).
 */
enum step crew_command(struct bench *b, enum command command);
/* Release the workers from the start barrier. */
void crew_go(struct bench *b);
/*
 * Stop the workers and wait until all have finished their last operation. A
 * worker that does not finish is an error; without `patient` the wait is short.
 */
enum step crew_halt(struct bench *b, bool patient);
/* One event, turned into a step; STEP_OK: look at what it was in *event. */
enum step crew_wait(struct bench *b, uint64_t deadline, int fd, enum event *event);
/*
 * Whether every worker is still bound to its CPU alone: the kernel lifts the
 * binding when the CPU is taken offline. Returns the first that is not, or -1.
 */
int crew_unpinned(const struct bench *b);
/* Dismiss all, by force where `kill_them`; false where some cannot be killed. */
bool crew_end(struct bench *b, bool kill_them);

#endif
