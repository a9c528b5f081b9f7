// SPDX-License-Identifier: GPL-2.0-only
#include "gate.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

bool gate_pass(struct state *state, struct worker *worker, int gate)
{
	int open;

	atomic_store(&worker->ready, gate);
	/* It returns early where the gate has moved meanwhile, or for a signal. */
	while ((open = atomic_load(&state->gate)) < gate)
		syscall(SYS_futex, &state->gate, FUTEX_WAIT, open, NULL, NULL, 0);
	return open != GATE_STOP;
}

void gate_open(struct state *state, int gate)
{
	atomic_store(&state->gate, gate);
	syscall(SYS_futex, &state->gate, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
