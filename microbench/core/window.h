/* SPDX-License-Identifier: GPL-2.0-only */
/* One timed window: start barrier, warm-up, snapshots, accounting. */
#ifndef FSCALE_WINDOW_H
#define FSCALE_WINDOW_H

#include "bench.h"

/*
 * Run one window of at most `seconds` after a ramp of `ramp` seconds; it ends
 * earlier when a worker runs out of stock. It is added to the result, and
 * *length is how long it was; or *length is 0 where it was shorter than
 * --min-window, or where its edges are uncertain: then the result's reason is
 * set. An interrupted window is always added.
 */
enum step window_run(struct bench *b, double ramp, double seconds, double *length);

/* Record what was done between two snapshots; false without memory. */
bool window_add(struct bench *b, const struct snapshot *first, const struct snapshot *last,
		enum end end);

#endif
