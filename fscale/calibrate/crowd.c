// SPDX-License-Identifier: GPL-2.0-only
#include "crowd.h"

#include <stdlib.h>
#include <unistd.h>

#include "median.h"
#include "team.h"

#define WINDOWS 5
#define WINDOW_NS 20000000u
#define BATCH 16	/* operations between two looks at the clock */

struct node {
	_Alignas(APART) _Atomic(struct node *) next;
	atomic_bool waits;
};

struct object {
	_Alignas(APART) atomic_ulong word;
	_Alignas(APART) _Atomic(struct node *) tail;
	_Alignas(APART) unsigned long guarded;
};

struct counted {
	_Alignas(APART) unsigned long operations;
	double seconds;
};

struct scene {
	struct object object;
	const struct crowd *crowd;
	struct counted *counted;
	unsigned int count;
	double rates[WINDOWS], fairness[WINDOWS];
};

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void add(void *shared, void *own)
{
	struct object *object = shared;

	(void)own;
	atomic_fetch_add(&object->word, 1);
}

static void add_own(void *shared, void *own)
{
	struct node *node = own;

	(void)shared;
	atomic_fetch_add((atomic_ulong *)&node->next, 1);
}

static void read_shared(void *shared, void *own)
{
	struct object *object = shared;

	(void)own;
	atomic_load_explicit(&object->word, memory_order_acquire);
}

/* As the kernel's qspinlock queues: each waits at a line of its own (Mellor-Crummey and Scott). */
static void queue_lock(void *shared, void *own)
{
	struct object *object = shared;
	struct node *node = own, *before, *after;

	atomic_store_explicit(&node->next, NULL, memory_order_relaxed);
	atomic_store_explicit(&node->waits, true, memory_order_relaxed);
	before = atomic_exchange(&object->tail, node);
	if (before) {
		atomic_store_explicit(&before->next, node, memory_order_release);
		while (atomic_load_explicit(&node->waits, memory_order_acquire))
			relax();
	}
	object->guarded++;
	after = atomic_load_explicit(&node->next, memory_order_acquire);
	if (!after) {
		struct node *last = node;

		if (atomic_compare_exchange_strong(&object->tail, &last, NULL))
			return;
		while (!(after = atomic_load_explicit(&node->next, memory_order_acquire)))
			relax();
	}
	atomic_store_explicit(&after->waits, false, memory_order_release);
}

static void test_and_set_lock(void *shared, void *own)
{
	struct object *object = shared;

	(void)own;
	while (atomic_exchange_explicit(&object->word, 1, memory_order_acquire))
		while (atomic_load_explicit(&object->word, memory_order_relaxed))
			relax();
	object->guarded++;
	atomic_store_explicit(&object->word, 0, memory_order_release);
}

const struct crowd crowds[] = {
	{ "add", add },
	{ "add_own", add_own },
	{ "read", read_shared },
	{ "queue_lock", queue_lock },
	{ "test_and_set_lock", test_and_set_lock },
	{ 0 },
};

static void window(struct member *m, struct node *node)
{
	struct scene *scene = m->context;
	struct counted *mine = &scene->counted[m->id];
	uint64_t begun = now_ns(), now;

	mine->operations = 0;
	do {
		for (unsigned int i = 0; i < BATCH; i++)
			scene->crowd->operation(&scene->object, node);
		mine->operations += BATCH;
		now = now_ns();
	} while (now - begun < WINDOW_NS);
	mine->seconds = (double)(now - begun) / 1e9;
}

static void add_up(struct scene *scene, unsigned int round)
{
	double sum = 0, least = 0;

	for (unsigned int i = 0; i < scene->count; i++) {
		double rate = (double)scene->counted[i].operations / scene->counted[i].seconds;

		sum += rate;
		if (!i || rate < least)
			least = rate;
	}
	scene->rates[round] = sum;
	scene->fairness[round] = least * scene->count / sum;
}

static void windows(struct member *m)
{
	struct scene *scene = m->context;
	struct node node = { 0 };

	for (unsigned int round = 0; round < WINDOWS; round++) {
		team_meet(m);
		window(m, &node);
		team_meet(m);
		if (!m->id)
			add_up(scene, round);
	}
}

int crowd_measure(const struct crowd *crowd, const int *cpus, unsigned int count, double *rate,
		  double *fairness, const char **call)
{
	struct scene *scene = aligned_alloc(APART, sizeof(*scene));
	struct counted *counted = aligned_alloc(APART, count * sizeof(*counted));

	*call = "aligned_alloc";
	if (!scene || !counted)
		goto err;
	*scene = (struct scene){ .crowd = crowd, .counted = counted, .count = count };
	if (team_run(cpus, count, windows, scene, call))
		return -1; /* threads that were started use the scene still */
	*rate = median(scene->rates, WINDOWS);
	*fairness = median(scene->fairness, WINDOWS);
	free(counted);
	free(scene);
	return 0;
err:
	free(counted);
	free(scene);
	return -1;
}
