/* SPDX-License-Identifier: GPL-2.0-only */
/* Workers: pinned, they obey the parent's commands and run the timed loop. */
#ifndef FSCALE_WORKER_H
#define FSCALE_WORKER_H

#include <sys/types.h>

#include "workload.h"

/* The names that profilers filter by. */
#define COMM_SETUP "fscale-set"
#define COMM_RUN "fscale-run"
#define COMM_BACKGROUND "fscale-bg"

/*
 * The body of a process that is one worker; never returns. `notify` is an eventfd that wakes the
 * parent; `parent` is the parent's pid.
 */
_Noreturn void worker_process(struct worker *w, int notify, pid_t parent);
/* The same of a process whose threads are the workers. */
_Noreturn void worker_threads(struct worker *workers, unsigned int count, int notify, pid_t parent);

#endif
