/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Windows by count: all workers' operations together say where one ends. Time
 * would not do under a simulator, where a window has to hold few operations and
 * every clock that is read costs some of them.
 */
#ifndef FSCALE_TALLY_H
#define FSCALE_TALLY_H

#include <stdatomic.h>
#include <stdint.h>

#include "precision.h"

struct tally {
	_Atomic uint32_t started;	/* workers past the start barrier; nothing counts before all are */
	_Atomic uint64_t done;		/* operations of all workers since then */
	_Atomic uint64_t base;		/* where the first window begins; UINT64_MAX: not yet known */
	uint64_t warmup;		/* operations before that is decided */
	uint64_t window;		/* operations of each, at most `most` */
	uint64_t most;
	uint64_t windows;		/* 0: windows are by time */
	uint64_t least_ns;		/* no window is shorter, by the rate of the warm-up */
	uint64_t thousandths;		/* windows end early when the rate is known so well; 0: they do not */
	uint64_t started_ns;
	uint64_t edge_ns;		/* when the last window began; with `thousandths` */
	uint64_t ns[PRECISION_WINDOWS];	/* what the windows took; with `thousandths` */
};

enum mark { MARK_NONE, MARK_WARM, MARK_EDGE };

/* One operation more; MARK_EDGE: it is the last before an edge, of which *number is set. */
static inline enum mark tally_operation(struct tally *t, uint32_t workers, uint64_t *number)
{
	uint64_t done, base;

	if (atomic_load_explicit(&t->started, memory_order_relaxed) < workers)
		return MARK_NONE;
	done = atomic_fetch_add_explicit(&t->done, 1, memory_order_relaxed) + 1;
	if (done == t->warmup)
		return MARK_WARM;
	base = atomic_load_explicit(&t->base, memory_order_acquire);
	if (done < base || (done - base) % t->window)
		return MARK_NONE;
	*number = (done - base) / t->window;
	return MARK_EDGE;
}

#endif
