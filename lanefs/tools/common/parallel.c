// SPDX-License-Identifier: GPL-2.0-only
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "die.h"
#include "parallel.h"

struct job {
	size_t count;
	atomic_size_t next;
	void (*work)(void *context, size_t number);
	void *context;
};

static void *take_turns(void *argument)
{
	struct job *job = argument;
	size_t number;

	while ((number = atomic_fetch_add(&job->next, 1)) < job->count)
		job->work(job->context, number);
	return NULL;
}

void parallel(unsigned int threads, size_t count, void (*work)(void *context, size_t number),
	      void *context)
{
	struct job job = { .count = count, .work = work, .context = context };
	unsigned int helpers = threads < count ? threads : (unsigned int)count, started = 0;
	pthread_t *helper = allocate(helpers, sizeof(*helper));

	/* The caller is one of them. */
	while (started + 1 < helpers &&
	       !pthread_create(&helper[started], NULL, take_turns, &job))
		started++;
	take_turns(&job);
	while (started)
		pthread_join(helper[--started], NULL);
	free(helper);
}
