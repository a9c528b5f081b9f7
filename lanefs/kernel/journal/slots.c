// SPDX-License-Identifier: GPL-2.0-only
/*
 * Membership of handles in the running transaction by CPU, with journal=concurrent, so that CPUs
 * that share a journal do not share its counters.
 *
 * A slot is one word (core/slot.h). The commit, and who lacks credits, closes all slots. When all
 * are closed and empty, and no handle is counted in the transaction itself, the transaction has no
 * member, and gets none.
 *
 * A slot is opened, with credits, by a handle that joins the slow way, under j_lock, while the
 * transaction is not locked and nobody waits.
 */
#include <linux/percpu.h>

#include "core/slot.h"
#include "journal/journal.h"

/* So much of a transaction may lie in slots, unused, of all CPUs together: a part of it. */
#define LANEFS_SLOT_PART	2
/* And no more in one than handles at a time on a CPU can use. */
#define LANEFS_SLOT_HANDLES	4

/* The slot through which the handle has joined; NULL: this CPU's has nothing to give. */
u64 *lanefs_slot_enter(struct lanefs_journal *journal, unsigned int credits)
{
	u64 *slot = raw_cpu_ptr(journal->j_slots);

	return lanefs_slot_take(slot, credits) ? slot : NULL;
}

/* Under j_lock: how many credits to open this CPU's slot with; 0: not at all. */
unsigned int lanefs_slot_share(const struct lanefs_journal *journal, unsigned int credits)
{
	unsigned int share = journal->j_max_txn / LANEFS_SLOT_PART / num_online_cpus();

	lockdep_assert_held(&journal->j_lock);
	share = min_t(unsigned int, share, LANEFS_SLOT_HANDLES * LANEFS_CREDITS);
	return share < credits ? 0 : share;
}

/* Under j_lock: this CPU's slot has so many credits more, which are reserved. */
void lanefs_slot_open(struct lanefs_journal *journal, unsigned int credits)
{
	lockdep_assert_held(&journal->j_lock);
	lanefs_slot_fill(raw_cpu_ptr(journal->j_slots), credits);
}

/* Under j_lock: closes all slots; how many credits they had. */
unsigned int lanefs_slots_close(struct lanefs_journal *journal)
{
	unsigned int credits = 0;
	int cpu;

	lockdep_assert_held(&journal->j_lock);
	for_each_possible_cpu(cpu)
		credits += lanefs_slot_close(per_cpu_ptr(journal->j_slots, cpu));
	return credits;
}

/*
 * Whether handles that came through slots are open. If all slots are closed there will be no more,
 * and what the others did is seen behind this.
 */
bool lanefs_slots_busy(const struct lanefs_journal *journal)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (lanefs_slot_busy(per_cpu_ptr(journal->j_slots, cpu)))
			return true;
	return false;
}
