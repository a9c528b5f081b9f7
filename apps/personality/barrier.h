/* SPDX-License-Identifier: GPL-2.0-only */
/* Barriers that all workers pass together. A waiting worker sleeps: the other side may be measured. */
#ifndef APPS_BARRIER_H
#define APPS_BARRIER_H

#include "personality.h"

/* In a worker: wait until number `barrier` opens; false when the run ends instead. */
bool barrier_pass(struct state *state, struct worker *worker, int barrier);

/* In the parent: open it, and all before it. */
void barrier_open(struct state *state, int barrier);

#endif
