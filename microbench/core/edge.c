// SPDX-License-Identifier: GPL-2.0-only
#include "edge.h"

/* The first window begins when every worker has done about so many more. */
#define LEAD_OPS 4

void edge_start(struct shared *shm, uint32_t workers)
{
	struct tally *t = &shm->tally;

	roi_work();
	if (atomic_load(&t->started) + 1 == workers)
		t->started_ns = now_ns();
	atomic_fetch_add(&t->started, 1);
}

static void size_windows(struct tally *t, uint32_t workers)
{
	uint64_t elapsed = now_ns() - t->started_ns;
	uint64_t window = elapsed ? t->warmup * t->least_ns / elapsed : t->most;

	window = window > t->window ? window : t->window;
	t->window = window < t->most ? window : t->most;
	atomic_store_explicit(&t->base, atomic_load(&t->done) + LEAD_OPS * (uint64_t)workers,
			      memory_order_release);
}

/* Between two windows, as reading the clock takes operations of other workers. */
static void time_window(struct tally *t, uint64_t number)
{
	uint64_t now = now_ns();

	if (number > 0)
		t->ns[number - 1] = now - t->edge_ns;
	t->edge_ns = now;
	if (precise(t->ns, number, t->thousandths))
		t->windows = number;
}

static void window_edge(struct shared *shm, uint64_t number)
{
	struct tally *t = &shm->tally;

	if (number > t->windows)
		return; /* of operations that were under way at PHASE_STOP */
	if (number > 0)
		roi_end();
	if (t->thousandths)
		time_window(t, number);
	if (number < t->windows) {
		roi_begin();
		return;
	}
	/* Workers that are still in an operation finish without the simulation of caches. */
	roi_mode_ordered();
	shm_end_window(shm);
}

void edge(struct shared *shm, uint32_t workers, enum mark mark, uint64_t number)
{
	if (mark == MARK_WARM)
		size_windows(&shm->tally, workers);
	else
		window_edge(shm, number);
}
