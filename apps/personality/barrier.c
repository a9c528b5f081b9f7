// SPDX-License-Identifier: GPL-2.0-only
#include "barrier.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

bool barrier_pass(struct state *state, struct worker *worker, int barrier)
{
	int open;

	atomic_store(&worker->ready, barrier);
	/* The call returns early if another barrier has opened meanwhile, or on a signal. */
	while ((open = atomic_load(&state->barrier)) < barrier)
		syscall(SYS_futex, &state->barrier, FUTEX_WAIT, open, NULL, NULL, 0);
	return open != BARRIER_STOP;
}

void barrier_open(struct state *state, int barrier)
{
	atomic_store(&state->barrier, barrier);
	syscall(SYS_futex, &state->barrier, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
