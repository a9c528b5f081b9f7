/* SPDX-License-Identifier: GPL-2.0-only */
/* The rounds of a worker in a turn, timed by the worker itself. */
#ifndef APPS_STINT_H
#define APPS_STINT_H

#include "personality.h"

/* In the worker: before a round of the warm-up; after all of them; after the last round. */
void stint_round(struct worker *worker);
void stint_begin(struct worker *worker);
void stint_end(struct worker *worker);

/*
 * In the parent: seconds that a turn's operations took, in a turn that counts from begin_ns on. The
 * round that was under way then counts by its part that came after, which is added to *ops.
 */
double stint_seconds(const struct stint *stint, uint64_t begin_ns, double *ops);

#endif
