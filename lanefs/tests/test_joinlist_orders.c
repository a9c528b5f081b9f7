// SPDX-License-Identifier: GPL-2.0-only
/* Blocks join a transaction, leave it and join again, in every order; then they are fetched. */
#include "explore.h"
#include "core/joinlist.h"
#include "../../tests/check.h"

static struct lanefs_joinlist list;
static struct lanefs_join nodes[4];
static int ended;
static bool broken;

static void insert(struct lanefs_join *node)
{
	struct lanefs_join *before;

	if (!broken) {
		lanefs_joinlist_insert(&list, node);
		return;
	}
	/* Two steps, where the list takes one. */
	node->next = NULL;
	before = READ_ONCE(list.last);
	WRITE_ONCE(list.last, node);
	WRITE_ONCE(before->next, node);
	node->state = LANEFS_JOIN_IN;
}

static void reset(void)
{
	lanefs_joinlist_init(&list);
	for (int i = 0; i < 4; i++)
		nodes[i] = (struct lanefs_join) { 0 };
	ended = 0;
}

static void two(void)
{
	insert(&nodes[0]);
	insert(&nodes[1]);
	lanefs_joinlist_remove(&nodes[0]);
	ended++;
}

static void again(void)
{
	insert(&nodes[2]);
	lanefs_joinlist_remove(&nodes[2]);
	lanefs_joinlist_insert(&list, &nodes[2]);
	ended++;
}

static void one(void)
{
	insert(&nodes[3]);
	ended++;
}

static bool good(void)
{
	bool joined, seen[4] = { false };
	struct lanefs_join *node;
	int count = 0;

	while (count <= 4 && (node = lanefs_joinlist_fetch(&list, &joined))) {
		int which = node - nodes;

		if (seen[which] || joined != (which != 0) || node->state != LANEFS_JOIN_OUT)
			return false;
		seen[which] = true;
		count++;
	}
	/* An empty list is as a new one. */
	return count == 4 && list.last == &list.first && ended == 3;
}

static void (*const tasks[])(void) = { two, again, one, NULL };
static const struct explore_case joins = { .reset = reset, .tasks = tasks, .good = good };

int main(void)
{
	struct explore_count found = explore(&joins);

	printf("%lu orders\n", found.orders);
	CHECK(found.orders > 10000);
	CHECK_EQUAL(found.bad + found.stuck, 0);
	broken = true;
	CHECK(explore(&joins).bad > 0);
	return 0;
}
