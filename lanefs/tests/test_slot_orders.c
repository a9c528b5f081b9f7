// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handles join through a slot, or count themselves in the transaction, while a commit locks it: in
 * every order. Once the commit has found nobody, nobody is in, and nobody comes any more; credits
 * are neither lost nor made.
 */
#include "explore.h"
#include "core/slot.h"
#include "../../tests/check.h"

#define HANDLES		2
#define CREDITS		2	/* of each handle, which uses one */
#define FILLED		3	/* of the slot at first: enough for one at a time */

static u64 slot;
static bool locked, drained;
static int inside, slow, late, reserved, refused;
static bool wait_for_slots;

static void reset(void)
{
	slot = 0;
	locked = drained = false;
	inside = slow = late = refused = 0;
	reserved = FILLED;
	lanefs_slot_fill(&slot, FILLED);
}

/* As handle.c does it; what is done under j_lock has no point where another task goes on. */
static void handle(void)
{
	bool quick = lanefs_slot_take(&slot, CREDITS);

	if (!quick) {
		explore_access();
		if (locked) {
			refused++;
			return;
		}
		slow++;
		reserved += CREDITS;
	}
	inside++;
	late += drained;
	explore_access();
	late += drained;
	inside--;
	if (quick && lanefs_slot_give(&slot, CREDITS - 1))
		return;
	if (quick)
		explore_access();
	reserved -= CREDITS - 1;
	slow -= !quick;
}

static bool nobody(void)
{
	return !slow && !(wait_for_slots && lanefs_slot_busy(&slot));
}

static void commit(void)
{
	explore_access();
	locked = true;
	/* A slot at a time is closed while others change it. */
	reserved -= lanefs_slot_close(&slot);
	explore_wait(nobody);
	drained = true;
	late += inside;
}

static bool good(void)
{
	/* Each that got in has used one credit. */
	return !late && !inside && reserved == HANDLES - refused && !lanefs_slot_busy(&slot);
}

static void (*const tasks[])(void) = { handle, handle, commit, NULL };
static const struct explore_case joins = { .reset = reset, .tasks = tasks, .good = good };

int main(void)
{
	struct explore_count found;

	wait_for_slots = true;
	found = explore(&joins);
	printf("%lu orders\n", found.orders);
	CHECK(found.orders > 10000);
	CHECK_EQUAL(found.bad, 0);
	CHECK_EQUAL(found.stuck, 0);

	/* A commit that looks at the transaction's own count only is found out. */
	wait_for_slots = false;
	found = explore(&joins);
	CHECK(found.bad > 0);
	return 0;
}
