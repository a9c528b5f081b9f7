// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each CPU has of a domain for itself, so that CPUs that share a domain do not share its
 * counters: where its new inodes come from (shards.c), and, with journal=concurrent, membership of
 * handles in the running transaction.
 *
 * For that a slot has one word: the handles that were opened through it and have not ended, whether it is
 * open, and credits of the running transaction that nobody uses. Who finds it open, with credits
 * enough, is a member by taking them: one compare-and-exchange, on a line that is this CPU's. The
 * commit, and who lacks credits, closes the slots, which takes the credits out; a closed slot only
 * loses handles. So when all slots are closed and empty, and no handle is counted in the
 * transaction itself, the transaction has no member, and gets none.
 *
 * A slot is opened, with credits, by a handle that joins the slow way, under j_lock, while the
 * transaction is not locked and nobody waits.
 */
#include <linux/percpu.h>

#include "lanefs.h"

#define LANEFS_SLOT_HANDLE	(1ULL << 32)
#define LANEFS_SLOT_OPEN	(1ULL << 31)
#define LANEFS_SLOT_CREDITS	(LANEFS_SLOT_OPEN - 1)

/* So much of a transaction may lie in slots, unused, of all CPUs together: a part of it. */
#define LANEFS_SLOT_PART	2
/* And no more in one than handles at a time on a CPU can use. */
#define LANEFS_SLOT_HANDLES	4

int lanefs_slots_start(struct lanefs_domain *domain)
{
	struct lanefs_slot *slot;
	int cpu;

	domain->d_slots = alloc_percpu(struct lanefs_slot);
	if (!domain->d_slots)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		slot = per_cpu_ptr(domain->d_slots, cpu);
		atomic64_set(&slot->s_state, 0);
		slot->s_inode_first = lanefs_region(domain, cpu);
		slot->s_inode_hint = slot->s_inode_first;
	}
	return 0;
}

void lanefs_slots_stop(struct lanefs_domain *domain)
{
	free_percpu(domain->d_slots);
}

/* The slot through which the handle has joined; NULL: this CPU's has nothing to give. */
struct lanefs_slot *lanefs_slot_enter(struct lanefs_domain *domain, unsigned int credits)
{
	struct lanefs_slot *slot = raw_cpu_ptr(domain->d_slots);
	s64 state = atomic64_read(&slot->s_state);

	do {
		if (!(state & LANEFS_SLOT_OPEN) || (state & LANEFS_SLOT_CREDITS) < credits)
			return NULL;
	} while (!atomic64_try_cmpxchg(&slot->s_state, &state,
				       state + LANEFS_SLOT_HANDLE - credits));
	return slot;
}

/* False: the slot is closed, so the credits that are left are the transaction's. */
bool lanefs_slot_leave(struct lanefs_slot *slot, unsigned int left)
{
	s64 state = atomic64_read(&slot->s_state), next;

	do {
		next = state - LANEFS_SLOT_HANDLE;
		if (state & LANEFS_SLOT_OPEN)
			next += left;
	} while (!atomic64_try_cmpxchg(&slot->s_state, &state, next));
	return state & LANEFS_SLOT_OPEN;
}

/* Under j_lock: how many credits to open this CPU's slot with; 0: not at all. */
unsigned int lanefs_slot_share(const struct lanefs_domain *domain, unsigned int credits)
{
	unsigned int share = domain->j_max_txn / LANEFS_SLOT_PART / num_online_cpus();

	share = min(share, LANEFS_SLOT_HANDLES * credits);
	return share < credits ? 0 : share;
}

/* Under j_lock: the slot has so many credits more, which are reserved. */
void lanefs_slot_open(struct lanefs_domain *domain, unsigned int credits)
{
	struct lanefs_slot *slot = raw_cpu_ptr(domain->d_slots);
	s64 state = atomic64_read(&slot->s_state);

	while (!atomic64_try_cmpxchg(&slot->s_state, &state,
				     (state | LANEFS_SLOT_OPEN) + credits))
		;
}

/* Under j_lock: closes all slots; how many credits they had. */
unsigned int lanefs_slots_close(struct lanefs_domain *domain)
{
	const u64 taken = LANEFS_SLOT_OPEN | LANEFS_SLOT_CREDITS;
	unsigned int credits = 0;
	struct lanefs_slot *slot;
	int cpu;

	for_each_possible_cpu(cpu) {
		slot = per_cpu_ptr(domain->d_slots, cpu);
		if (atomic64_read(&slot->s_state) & taken)
			credits += atomic64_fetch_andnot(taken, &slot->s_state) &
				   LANEFS_SLOT_CREDITS;
	}
	return credits;
}

/*
 * Whether handles that came through slots are open. If all slots are closed there will be no more,
 * and what the others did is seen behind this.
 */
bool lanefs_slots_busy(const struct lanefs_domain *domain)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (atomic64_read_acquire(&per_cpu_ptr(domain->d_slots, cpu)->s_state) >> 32)
			return true;
	return false;
}
