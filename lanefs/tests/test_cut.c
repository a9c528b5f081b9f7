// SPDX-License-Identifier: GPL-2.0-only
/* The recovery's cut against a search of all cuts. */
#include <stdlib.h>
#include <time.h>

#include "core/cut.h"
#include "../../tests/check.h"
#include "random.h"

#define DOMAINS 3
#define MOST 4

static struct lanefs_cut_node nodes[DOMAINS][MOST];
static struct lanefs_cut_journal journals[DOMAINS];
static __le64 needs[DOMAINS][MOST][DOMAINS];

static bool is_cut(const u64 *end)
{
	for (int d = 0; d < DOMAINS; d++)
		for (u64 i = 0; i < end[d] - journals[d].base; i++)
			for (int other = 0; other < DOMAINS; other++)
				if (le64_to_cpu(needs[d][i][other]) > end[other])
					return false;
	return true;
}

/* Cuts are closed under the maximum in each domain, so the largest one is unique. */
static void search(u64 *best)
{
	u64 end[DOMAINS];

	for (int d = 0; d < DOMAINS; d++)
		best[d] = journals[d].base;
	for (end[0] = journals[0].base; end[0] <= journals[0].base + journals[0].count; end[0]++)
		for (end[1] = journals[1].base; end[1] <= journals[1].base + journals[1].count; end[1]++)
			for (end[2] = journals[2].base; end[2] <= journals[2].base + journals[2].count; end[2]++)
				for (int d = 0; is_cut(end) && d < DOMAINS; d++)
					if (end[d] > best[d])
						best[d] = end[d];
}

/* As recovery has it: who needs no more than the one before has no array of its own. */
static int share_needs(void)
{
	int shared = 0;

	for (int d = 0; d < DOMAINS; d++)
		for (u64 i = 1; i < journals[d].count; i++)
			if (lanefs_cut_needs_no_more(nodes[d][i].needs, nodes[d][i - 1].needs,
						     DOMAINS)) {
				nodes[d][i].needs = nodes[d][i - 1].needs;
				shared++;
			}
	return shared;
}

static void random_journals(void)
{
	for (int d = 0; d < DOMAINS; d++) {
		journals[d].nodes = nodes[d];
		journals[d].base = pick(5);
		journals[d].count = pick(MOST + 1);
	}
	for (int d = 0; d < DOMAINS; d++)
		for (u64 i = 0; i < journals[d].count; i++) {
			nodes[d][i].seq = journals[d].base + 1 + i;
			nodes[d][i].needs = needs[d][i];
			for (int other = 0; other < DOMAINS; other++) {
				u64 need = other == d || pick(2) ? 0 :
					   journals[other].base + pick((unsigned int)journals[other].count + 2);

				needs[d][i][other] = cpu_to_le64(need);
			}
		}
}

/*
 * Journals of which each transaction needs one of the next one's, in a chain: nothing stays, and each
 * end is lowered by one at a time. Made so by hand it must not take hours.
 */
static void long_chain(u32 domains, u64 count)
{
	struct lanefs_cut_node *chain = calloc(domains * count, sizeof(*chain));
	struct lanefs_cut_journal *journal = calloc(domains, sizeof(*journal));
	__le64 *values = calloc(domains * domains * count, sizeof(*values));
	clock_t began = clock();

	CHECK(chain && journal && values);
	for (u32 d = 0; d < domains; d++) {
		journal[d] = (struct lanefs_cut_journal){ .nodes = chain + d * count, .count = count };
		for (u64 i = 0; i < count; i++) {
			journal[d].nodes[i].seq = i + 1;
			journal[d].nodes[i].needs = values + domains * (d * count + i);
			journal[d].nodes[i].needs[(d + 1) % domains] =
				cpu_to_le64(i + 1 + (d + 1 == domains));
		}
	}
	lanefs_cut(journal, domains);
	CHECK(clock() - began < 2 * CLOCKS_PER_SEC);
	for (u32 d = 0; d < domains; d++)
		CHECK_EQUAL(journal[d].end, 0);
	free(values);
	free(journal);
	free(chain);
}

int main(void)
{
	int shortened = 0, shared = 0;

	for (int i = 0; i < 50000; i++) {
		u64 best[DOMAINS];

		random_journals();
		search(best);
		if (i % 2)
			shared += share_needs();
		lanefs_cut(journals, DOMAINS);
		for (int d = 0; d < DOMAINS; d++) {
			CHECK_EQUAL(journals[d].end, best[d]);
			shortened += best[d] < journals[d].base + journals[d].count;
		}
	}
	CHECK(shortened > 1000 && shared > 1000);
	long_chain(2, 200000);
	long_chain(LANEFS_MAX_DOMAINS, 150);
	return 0;
}
