// SPDX-License-Identifier: GPL-2.0-only
/* Tasks are coroutines; the orders are searched depth first, each run from its beginning. */
#include <stdlib.h>
#include <ucontext.h>

#include "explore.h"
#include "../../tests/check.h"

#define STACK		(256 << 10)
#define MOST_STEPS	256

struct task {
	ucontext_t context;
	void (*body)(void);
	bool (*waits)(void);
	bool ended;
};

static struct task tasks[EXPLORE_TASKS];
static char *stacks[EXPLORE_TASKS];
static ucontext_t scheduler;
static struct task *running;

void explore_access(void)
{
	/* What is shared may be read while nobody runs, too: by conditions, and at the end. */
	if (running)
		CHECK(!swapcontext(&running->context, &scheduler));
}

void explore_wait(bool (*condition)(void))
{
	running->waits = condition;
	explore_access();
}

static void start(void)
{
	running->body();
	running->ended = true;
	CHECK(!swapcontext(&running->context, &scheduler));
}

/* getcontext() returns twice for the compiler: no variable lives across it. */
static void make(struct task *task, char *stack)
{
	CHECK(!getcontext(&task->context));
	task->context.uc_stack.ss_sp = stack;
	task->context.uc_stack.ss_size = STACK;
	makecontext(&task->context, start, 0);
}

static void resume(struct task *task)
{
	task->waits = NULL;
	running = task;
	CHECK(!swapcontext(&scheduler, &task->context));
	running = NULL;
}

static int prepare(const struct explore_case *what)
{
	int count = 0;

	what->reset();
	for (; what->tasks[count]; count++) {
		CHECK(count < EXPLORE_TASKS);
		if (!stacks[count])
			stacks[count] = malloc(STACK);
		CHECK(stacks[count]);
		tasks[count] = (struct task) { .body = what->tasks[count] };
		make(&tasks[count], stacks[count]);
		/* Before its first access to what is shared no order matters. */
		resume(&tasks[count]);
	}
	return count;
}

static bool ready(const struct task *task)
{
	return !task->ended && (!task->waits || task->waits());
}

/* The `which`th of the tasks that can go on makes a step. How many there were; 0: none. */
static int step(int count, int which)
{
	struct task *chosen = NULL;
	int able = 0;

	for (int i = 0; i < count; i++)
		if (ready(&tasks[i]) && able++ == which)
			chosen = &tasks[i];
	if (chosen)
		resume(chosen);
	return able;
}

struct explore_count explore(const struct explore_case *what)
{
	int choice[MOST_STEPS] = { 0 }, able[MOST_STEPS], depth;
	struct explore_count found = { 0 };

	do {
		int count = prepare(what);
		bool ended = true;

		for (depth = 0; (able[depth] = step(count, choice[depth])); depth++)
			CHECK(depth + 1 < MOST_STEPS);
		for (int i = 0; i < count; i++)
			ended = ended && tasks[i].ended;
		found.orders++;
		found.stuck += !ended;
		found.bad += ended && !what->good();
		while (depth && choice[depth - 1] + 1 == able[depth - 1])
			choice[--depth] = 0;
		if (depth)
			choice[depth - 1]++;
	} while (depth);
	for (int i = 0; i < EXPLORE_TASKS; i++) {
		free(stacks[i]);
		stacks[i] = NULL;
	}
	return found;
}
