/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes of a load: forked together, looked after, killed together. */
#ifndef APPS_CREW_H
#define APPS_CREW_H

#include <stdint.h>
#include <sys/types.h>

struct crew {
	const char *name; /* of a member, for messages */
	unsigned int size;
	void *run; /* what the functions get */
	int (*work)(void *run, unsigned int id); /* in the child; its exit code */
	const char *(*said)(void *run, unsigned int id); /* its error, empty for none */
	pid_t *pids; /* 0: ended */
	unsigned int ended;
	char error[512]; /* the first error of the run, empty for none */
};

/* Fork them. -1 with an error. */
int crew_start(struct crew *crew);

/* Count who has ended; -1 when one failed, or an error was there already. */
int crew_look(struct crew *crew);

/* Call `look` every `nap_ns` until the clock says `end_ns`; -1 when it does. */
int crew_until(struct crew *crew, uint64_t end_ns, long nap_ns, int (*look)(void *run));

/* Kill who is left, and free the crew's memory. */
void crew_kill(struct crew *crew);

/* Sleep. */
void nap(long ns);

/* Print a line that the driver waits for: an edge of the window. */
void say(const char *word);

/* Print the error as a JSON string, or null. */
void crew_print_error(const struct crew *crew);

#endif
