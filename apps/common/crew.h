/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes of a load: they are forked, watched and killed together. */
#ifndef APPS_CREW_H
#define APPS_CREW_H

#include <stdint.h>
#include <sys/types.h>

struct crew {
	const char *name; /* of a member, for messages */
	unsigned int size;
	void *run; /* what the functions get */
	int (*work)(void *run, unsigned int id); /* in the child; its exit code */
	const char *(*error_of)(void *run, unsigned int id); /* empty: none */
	pid_t *pids; /* 0: ended */
	unsigned int ended;
	char error[512]; /* the first error of the run, empty for none */
};

/* Fork them. -1 with an error. */
int crew_start(struct crew *crew);

/* Count the processes that have ended; -1 when one failed, or an error was there already. */
int crew_look(struct crew *crew);

/* Call `look` every `nap_ns` until `end_ns` (CLOCK_MONOTONIC); -1 when `look` returns it. */
int crew_until(struct crew *crew, uint64_t end_ns, long nap_ns, int (*look)(void *run));

/* Kill the remaining processes, and free the crew's memory. */
void crew_kill(struct crew *crew);

/* Sleep. */
void nap(long ns);

/* Print a line that the driver waits for, such as the start of the window. */
void print_line(const char *line);

/* Print the error as a JSON string, or null. */
void crew_print_error(const struct crew *crew);

#endif
