/* SPDX-License-Identifier: GPL-2.0-only */
/* Gates that all workers pass together. Who waits at one sleeps: another's turn may be measured. */
#ifndef APPS_GATE_H
#define APPS_GATE_H

#include "personality.h"

/* In a worker: wait until gate `gate` opens; false when all is over instead. */
bool gate_pass(struct state *state, struct worker *worker, int gate);

/* In the parent: open it, and all before it. */
void gate_open(struct state *state, int gate);

#endif
