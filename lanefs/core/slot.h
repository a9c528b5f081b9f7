/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_CORE_SLOT_H
#define LANEFS_CORE_SLOT_H

#include "shim.h"

/*
 * The word of a slot: handles that were opened through it and have not ended, whether it is open,
 * and credits of the running transaction that nobody uses. Who finds it open, with credits enough,
 * is a member by taking them: one compare-and-exchange. Closing takes the credits out; a closed
 * slot only loses handles.
 */
#define LANEFS_SLOT_HANDLE	(1ULL << 32)
#define LANEFS_SLOT_OPEN	(1ULL << 31)
#define LANEFS_SLOT_CREDITS	(LANEFS_SLOT_OPEN - 1)

/* Whether the handle is a member now. */
static inline bool lanefs_slot_take(u64 *slot, u32 credits)
{
	u64 state = READ_ONCE(*slot);

	do {
		if (!(state & LANEFS_SLOT_OPEN) || (state & LANEFS_SLOT_CREDITS) < credits)
			return false;
	} while (!try_cmpxchg(slot, &state, state + LANEFS_SLOT_HANDLE - credits));
	return true;
}

/* The handle ends. False: the slot is closed, and does not take the credits that are @left. */
static inline bool lanefs_slot_give(u64 *slot, u32 left)
{
	u64 state = READ_ONCE(*slot), next;

	do {
		next = state - LANEFS_SLOT_HANDLE;
		if (state & LANEFS_SLOT_OPEN)
			next += left;
	} while (!try_cmpxchg(slot, &state, next));
	return state & LANEFS_SLOT_OPEN;
}

/* It is open, with so many credits more. */
static inline void lanefs_slot_fill(u64 *slot, u32 credits)
{
	u64 state = READ_ONCE(*slot);

	while (!try_cmpxchg(slot, &state, (state | LANEFS_SLOT_OPEN) + credits))
		;
}

/* It is closed; how many credits it had. */
static inline u32 lanefs_slot_close(u64 *slot)
{
	u64 state = READ_ONCE(*slot);

	if (!(state & (LANEFS_SLOT_OPEN | LANEFS_SLOT_CREDITS)))
		return 0;
	while (!try_cmpxchg(slot, &state, state & ~(LANEFS_SLOT_HANDLE - 1)))
		;
	return state & LANEFS_SLOT_CREDITS;
}

/* Whether handles are open in it. What those did that have ended is seen behind this. */
static inline bool lanefs_slot_busy(const u64 *slot)
{
	return smp_load_acquire(slot) >= LANEFS_SLOT_HANDLE;
}

#endif
