/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tries every order in which a few tasks can come to memory that they share: a model checker for
 * code of core/ that has no locks, sequentially consistent. (What weaker orders would allow is
 * for the thread sanitizer to find: threads_*.c.)
 *
 * Include it before the code, whose accesses to shared memory are then points where another task
 * may go on.
 */
#ifndef LANEFS_TESTS_EXPLORE_H
#define LANEFS_TESTS_EXPLORE_H

#include <stdbool.h>

void explore_access(void);
#define LANEFS_SHARED_ACCESS() explore_access()

/* The task goes on when this is so; it may look at shared memory, and not change it. */
void explore_wait(bool (*condition)(void));

struct explore_case {
	void (*reset)(void);		/* before each order */
	void (*const *tasks)(void);	/* NULL behind the last; up to EXPLORE_TASKS */
	bool (*good)(void);		/* at the end: whether all is as it must be */
};

#define EXPLORE_TASKS 4

struct explore_count {
	unsigned long orders;	/* all that there are */
	unsigned long bad;	/* that did not end good */
	unsigned long stuck;	/* in which all tasks waited */
};

struct explore_count explore(const struct explore_case *what);

#endif
