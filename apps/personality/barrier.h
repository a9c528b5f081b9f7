/* SPDX-License-Identifier: GPL-2.0-only */
/* Barriers that all workers pass together. Who waits at one sleeps: another's turn may be measured. */
#ifndef APPS_BARRIER_H
#define APPS_BARRIER_H

#include "personality.h"

/* In a worker: wait until barrier `barrier` opens; false when all is over instead. */
bool barrier_pass(struct state *state, struct worker *worker, int barrier);

/* In the parent: open it, and all before it. */
void barrier_open(struct state *state, int barrier);

#endif
