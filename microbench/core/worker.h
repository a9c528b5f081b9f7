/* SPDX-License-Identifier: GPL-2.0-only */
/* A worker process: pinned, obeys the parent's commands, runs the timed loop. */
#ifndef FSCALE_WORKER_H
#define FSCALE_WORKER_H

#include <sys/types.h>

#include "workload.h"

/* The names that profilers filter by. */
#define COMM_SETUP "fscale-set"
#define COMM_RUN "fscale-run"
#define COMM_BACKGROUND "fscale-bg"

/*
 * The body of a worker process; never returns. `notify` is an eventfd that
 * wakes the parent; `parent` is the parent's pid.
 */
_Noreturn void worker_main(struct worker *w, int notify, pid_t parent);

#endif
