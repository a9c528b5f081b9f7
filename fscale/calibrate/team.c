// SPDX-License-Identifier: GPL-2.0-only
#include "team.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

struct thread {
	struct member member;
	team_work work;
	pthread_t handle;
};

uint64_t now_ns(void)
{
	struct timespec now;

	/* It cannot fail with this clock and this address. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *start(void *argument)
{
	struct thread *t = argument;

	team_meet(&t->member);
	t->work(&t->member);
	return NULL;
}

static int create(struct thread *t, int cpu)
{
	pthread_attr_t attributes;
	cpu_set_t set;
	int error;

	CPU_ZERO(&set);
	CPU_SET((unsigned int)cpu, &set);
	error = pthread_attr_init(&attributes);
	if (error)
		return error;
	error = pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
	if (!error)
		error = pthread_create(&t->handle, &attributes, start, t);
	pthread_attr_destroy(&attributes);
	return error;
}

int team_run(const int *cpus, unsigned int count, team_work work, void *context, const char **call)
{
	struct team team = { .cpus = cpus, .count = count };
	struct thread *threads = calloc(count, sizeof(*threads));
	int error;

	*call = "calloc";
	if (!threads)
		return -1;
	for (unsigned int i = 0; i < count; i++) {
		threads[i] = (struct thread){ .member = { &team, i, context }, .work = work };
		error = create(&threads[i], cpus[i]);
		if (error) {
			/* Those that are there wait for the missing one: only exit() ends them. */
			*call = "pthread_create";
			errno = error;
			return -1;
		}
	}
	for (unsigned int i = 0; i < count; i++)
		pthread_join(threads[i].handle, NULL);
	free(threads);
	return 0;
}

void team_meet(struct member *m)
{
	struct team *team = m->team;
	unsigned int round = atomic_load(&team->round);

	if (atomic_fetch_add(&team->arrived, 1) + 1 == team->count) {
		atomic_store(&team->arrived, 0);
		atomic_store(&team->round, round + 1);
		return;
	}
	while (atomic_load_explicit(&team->round, memory_order_acquire) == round)
		;
}
