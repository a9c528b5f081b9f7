/* SPDX-License-Identifier: GPL-2.0-only */
/* Events that wake the parent: a worker's notice, a child's death, a signal, a deadline. */
#ifndef FSCALE_EVENTS_H
#define FSCALE_EVENTS_H

#include <stdint.h>

enum event { EVENT_DEADLINE, EVENT_NOTICE, EVENT_FD, EVENT_CHILD, EVENT_INTERRUPT, EVENT_ERROR };

#define NO_DEADLINE UINT64_MAX

/* Block the signals and open the descriptors; returns the workers' eventfd, or -1 with errno. */
int events_open(void);

/*
 * Wait until `deadline` (CLOCK_MONOTONIC, ns), for the next event, or until
 * `fd` can be read (-1: none). EVENT_ERROR: errno is set.
 */
enum event events_wait(uint64_t deadline, int fd);

#endif
