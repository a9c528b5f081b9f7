// SPDX-License-Identifier: GPL-2.0-only
#include "cut.h"

bool lanefs_cut_needs_no_more(const __le64 *needs, const __le64 *before, u32 domains)
{
	u32 d;

	for (d = 0; d < domains; d++)
		if (le64_to_cpu(needs[d]) > le64_to_cpu(before[d]))
			return false;
	return true;
}

/* A transaction stays with all before it only, so it needs what they need. */
static void add_up_needs(struct lanefs_cut_journal *journal, u32 domains)
{
	__le64 *needs, *before;
	u64 i;
	u32 d;

	for (i = 1; i < journal->count; i++) {
		needs = journal->nodes[i].needs;
		before = journal->nodes[i - 1].needs;
		for (d = 0; d < domains; d++)
			if (le64_to_cpu(before[d]) > le64_to_cpu(needs[d]))
				needs[d] = before[d];
		cond_resched();
	}
}

/*
 * Lowers the end to the last transaction that needs none of domain @d behind @end. Returns whether it
 * moved.
 */
static bool lower_end(struct lanefs_cut_journal *journal, u32 d, u64 end)
{
	u64 before = journal->end;

	while (journal->end > journal->base &&
	       le64_to_cpu(journal->nodes[journal->end - journal->base - 1].needs[d]) > end)
		journal->end--;
	return journal->end != before;
}

void lanefs_cut(struct lanefs_cut_journal *journals, u32 domains)
{
	bool moved[LANEFS_MAX_DOMAINS], more;
	u32 d, other;

	for (d = 0; d < domains; d++) {
		add_up_needs(&journals[d], domains);
		journals[d].end = journals[d].base + journals[d].count;
		moved[d] = true;
	}
	do {
		more = false;
		for (d = 0; d < domains; d++) {
			if (!moved[d])
				continue;
			more = true;
			moved[d] = false;
			for (other = 0; other < domains; other++)
				if (lower_end(&journals[other], d, journals[d].end))
					moved[other] = true;
			cond_resched();
		}
	} while (more);
}
