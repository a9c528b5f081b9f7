// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slots and the list of what has joined under the thread sanitizer, with delays: tasks join
 * through slots and insert blocks, a commit closes the slots, waits for them and fetches the list,
 * with no other order between them than what the slots give.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static void delay(void);
#define LANEFS_SHARED_ACCESS() delay()

#include "core/joinlist.h"
#include "core/slot.h"
#include "../../tests/check.h"

#define TASKS		4
#define TRANSACTIONS	3000	/* at least, and as many blocks in them */
#define MOST		(100 * TRANSACTIONS)
#define BLOCKS		4	/* of a task in a transaction */

struct block {
	struct lanefs_join join;
	unsigned long contents;		/* changed by its task, read by the commit */
};

static u64 slots[TASKS];
static struct lanefs_joinlist list;
static struct block blocks[TASKS][BLOCKS];
static _Thread_local unsigned int dice;
static bool over;

/* Now and then another task goes first. */
static void delay(void)
{
	dice = dice * 1664525 + 1013904223;
	if (dice >> 29 == 0)
		sched_yield();
}

/* As an operation does: in, changes, out. */
static void *operations(void *of)
{
	int self = (int)(long)of;
	u64 *slot = &slots[self];

	dice = self + 1;
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		if (!lanefs_slot_take(slot, 1)) {
			sched_yield();
			continue;
		}
		for (int i = 0; i < BLOCKS; i++) {
			struct block *block = &blocks[self][i];

			if (block->join.state != LANEFS_JOIN_IN)
				lanefs_joinlist_insert(&list, &block->join);
			block->contents++;
			if (dice >> 31)
				lanefs_joinlist_remove(&block->join);
		}
		lanefs_slot_give(slot, 1);
	}
	return NULL;
}

static unsigned long fetched, changes;

#ifdef PLANTED_RACE
/* What ended handles did need not be seen behind this: the sanitizer has to say so. */
#define lanefs_slot_busy(slot) (READ_ONCE(*(slot)) >= LANEFS_SLOT_HANDLE)
#endif

static void commit(void)
{
	struct lanefs_join *join;
	unsigned long sum = 0;
	bool joined;

	for (int i = 0; i < TASKS; i++)
		lanefs_slot_close(&slots[i]);
	for (int i = 0; i < TASKS; i++)
		while (lanefs_slot_busy(&slots[i]))
			sched_yield();
	while ((join = lanefs_joinlist_fetch(&list, &joined))) {
		CHECK_EQUAL(join->state, LANEFS_JOIN_OUT);
		fetched++;
	}
	for (int i = 0; i < TASKS; i++)
		for (int j = 0; j < BLOCKS; j++) {
			CHECK_EQUAL(blocks[i][j].join.state, LANEFS_JOIN_OUT);
			sum += blocks[i][j].contents;
		}
	CHECK(sum >= changes);
	changes = sum;
	lanefs_joinlist_init(&list);
	for (int i = 0; i < TASKS; i++)
		lanefs_slot_fill(&slots[i], 4);
}

int main(void)
{
	pthread_t threads[TASKS];

	lanefs_joinlist_init(&list);
	for (long i = 0; i < TASKS; i++)
		CHECK(!pthread_create(&threads[i], NULL, operations, (void *)i));
	/* Where the machine is busy, few tasks have a turn between two commits. */
	for (int i = 0; i < TRANSACTIONS || (fetched <= TRANSACTIONS && i < MOST); i++) {
		commit();
		sched_yield();
	}
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < TASKS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	printf("%lu blocks fetched, %lu changes\n", fetched, changes);
	CHECK(fetched > TRANSACTIONS && changes >= fetched);
	return 0;
}
