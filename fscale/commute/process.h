/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes of the model: each has its part of the state, and executes calls. */
#ifndef FSCALE_COMMUTE_PROCESS_H
#define FSCALE_COMMUTE_PROCESS_H

#include "board.h"

/*
 * Fork three processes: two of one thread each, for calls of different processes, and one of two
 * threads for calls of the same process. A process of one thread shares nothing with another.
 */
void process_start_all(void);

/* The actor that executes call a (0) or b (1) of the test. */
struct actor *process_actor(int side);

/* Let it do what is requested, and wait for it. */
void process_ask(struct actor *actor, enum request request);

/* Bind this thread to a CPU: 0 and 1 are those of the calls. */
void process_pin(int cpu);

#endif
