// SPDX-License-Identifier: GPL-2.0-only
/*
 * Victim selection: which segment of a log a collector takes, and how it keeps it. Many collectors
 * search at the same time without locks, and take what they find under its group's lock.
 *
 * A look costs as much as there are segments, which on a large device is a good part of a collection.
 * So each group knows how few blocks are in use in its emptiest segment, or fewer (g_least): it is
 * lowered with each change, and renewed by a look that found no such segment. Groups that have nothing
 * better than what was found are left out.
 */
#include "space/segments.h"

#define LANEFS_ELSEWHERE	32	/* a victim of another part costs one of so many more */

/* Where this CPU's collector looks first: one of them serves the whole domain, or each has a part. */
static struct lanefs_part lanefs_part_collected(const struct lanefs_domain *domain)
{
	bool single = lanefs_ablated(domain->d_sbi, LANEFS_ABLATE_GC);
	u32 collectors = single ? 1 : domain->d_ncollectors;

	return lanefs_part(domain, raw_smp_processor_id() / domain->d_sbi->s_domains % collectors,
			   collectors);
}

/* Recomputes g_least after the emptiest segment of the group has changed. */
static void lanefs_least_renew(struct lanefs_group *group)
{
	u32 i;

	spin_lock(&group->g_lock);
	WRITE_ONCE(group->g_least, LANEFS_VICTIM_MOST);
	for (i = 0; i < LANEFS_SEGMENTS; i++)
		lanefs_least_lower(group, &group->g_segments[i]);
	spin_unlock(&group->g_lock);
}

/*
 * The cost of freeing the segment: the blocks to be moved (greedy), or these divided by the space
 * gained and its expected lifetime (Rosenblum and Ousterhout, TOCS 1992, section 3.6). At most
 * LANEFS_VICTIM_MOST are in use.
 */
static u64 lanefs_victim_cost(const struct lanefs_sb *sbi, u32 used, u32 changed)
{
	u64 age = (u32)jiffies - changed + 1ULL;

	if (READ_ONCE(sbi->s_options.victims) == LANEFS_VICTIMS_GREEDY)
		return used;
	return div64_u64((u64)(LANEFS_SEGMENT_BLOCKS + used) << 32,
			 age * (LANEFS_SEGMENT_BLOCKS - used));
}

/*
 * Whether a look may leave groups out by g_least: not where the age counts as well, nor where one
 * look waits for another on purpose.
 */
static bool lanefs_victim_skips(const struct lanefs_sb *sbi)
{
	return READ_ONCE(sbi->s_options.victims) == LANEFS_VICTIMS_GREEDY &&
	       !lanefs_ablated(sbi, LANEFS_ABLATE_CVS);
}

/*
 * The segment of the group that costs least, if that is less than *least; the fewest blocks that are
 * in use in one. Without locks: what it sees may be old, so another one might cost less (ScaleLFS,
 * section 4.5.2).
 */
static u32 lanefs_victim_look(struct lanefs_domain *domain, u32 number,
			      const struct lanefs_part *part, struct lanefs_victim *victim,
			      u64 *least)
{
	struct lanefs_group *group = &domain->d_groups[number];
	u32 i, at, used, fewest = LANEFS_VICTIM_MOST;
	const struct lanefs_segment *segment;
	u64 cost;

	for (i = 0; i < LANEFS_SEGMENTS; i++) {
		at = number * LANEFS_SEGMENTS + i;
		segment = &group->g_segments[i];
		used = READ_ONCE(segment->used);
		if (!lanefs_segment_candidate(segment) || used >= LANEFS_VICTIM_MOST)
			continue;
		fewest = min(fewest, used);
		cost = lanefs_victim_cost(domain->d_sbi, used, READ_ONCE(segment->changed));
		if (at < part->begin || at >= part->end)
			cost += cost / LANEFS_ELSEWHERE;
		if (cost >= *least)
			continue;
		victim->number = number;
		victim->first = i * LANEFS_SEGMENT_BLOCKS;
		*least = cost;
	}
	return fewest;
}

/* The same for all groups, some of which may be left out (`skip`); the cost, or U64_MAX. */
static u64 lanefs_victim_least(struct lanefs_domain *domain, bool skip,
			       struct lanefs_victim *victim)
{
	struct lanefs_part part = lanefs_part_collected(domain);
	struct lanefs_group *group;
	u64 least = U64_MAX;
	u32 i, fewest;

	for (i = 0; i < domain->d_ngroups; i++) {
		group = &domain->d_groups[i];
		if (skip && READ_ONCE(group->g_least) >= min_t(u64, least, LANEFS_VICTIM_MOST))
			continue;
		fewest = lanefs_victim_look(domain, i, &part, victim, &least);
		if (skip && fewest > READ_ONCE(group->g_least))
			lanefs_least_renew(group);
	}
	return least;
}

/* Takes the segment with the lowest cost; false: none is worth it. */
static bool lanefs_victim_find(struct lanefs_domain *domain, struct lanefs_victim *victim)
{
	struct lanefs_segment *segment;
	struct lanefs_group *group;
	bool taken = false, locked, skip;
	u64 least;

	while (!taken) {
		locked = lanefs_segments_lock(domain);
		/* Renewing g_least takes g_lock, which comes before d_segments_lock. */
		skip = !locked && lanefs_victim_skips(domain->d_sbi);
		least = lanefs_victim_least(domain, skip, victim);
		lanefs_segments_unlock(domain, locked);
		if (least == U64_MAX)
			return false;
		group = &domain->d_groups[victim->number];
		segment = lanefs_segment_of(group, victim->first);
		spin_lock(&group->g_lock);
		/* Another collector may have been faster. */
		taken = segment->state == LANEFS_SEGMENT_USED;
		if (taken) {
			WRITE_ONCE(segment->state, LANEFS_SEGMENT_VICTIM);
			victim->turn = ++segment->turn;
		}
		spin_unlock(&group->g_lock);
	}
	return true;
}

/* The same; ablate=cvs: one collector at a time. */
bool lanefs_victim_take(struct lanefs_domain *domain, struct lanefs_victim *victim)
{
	bool concurrent = !lanefs_ablated(domain->d_sbi, LANEFS_ABLATE_CVS), found;

	if (!concurrent)
		mutex_lock(&domain->d_victims_mutex);
	found = lanefs_victim_find(domain, victim);
	if (!concurrent)
		mutex_unlock(&domain->d_victims_mutex);
	return found;
}

/* Which blocks of `count` from bit `bit` on, of one segment, are in use, by their numbers from there. */
int lanefs_victim_used(struct lanefs_domain *domain, u32 number, u32 bit, u32 count,
			unsigned long *used)
{
	struct lanefs_group *group = &domain->d_groups[number];
	bool locked;
	int err;
	u32 i;

	err = lanefs_group_lock(domain, number);
	if (err)
		return err;
	locked = lanefs_segments_lock(domain);
	for (i = 0; i < count; i++)
		__assign_bit(i, used, test_bit_le(bit + i, group->g_busy));
	lanefs_segments_unlock(domain, locked);
	spin_unlock(&group->g_lock);
	return 0;
}

/* Under g_lock: whether it is the collector's still, since no block of it was taken. */
static bool lanefs_victim_held(const struct lanefs_segment *segment,
			       const struct lanefs_victim *victim)
{
	return segment->state == LANEFS_SEGMENT_VICTIM && segment->turn == victim->turn;
}

bool lanefs_victim_whole(struct lanefs_domain *domain, const struct lanefs_victim *victim)
{
	struct lanefs_group *group = &domain->d_groups[victim->number];
	bool whole;

	spin_lock(&group->g_lock);
	whole = lanefs_victim_held(lanefs_segment_of(group, victim->first), victim);
	spin_unlock(&group->g_lock);
	return whole;
}

/* Gives up the victim: its used blocks cannot be moved, or their transaction is not stable yet. */
void lanefs_victim_give(struct lanefs_domain *domain, const struct lanefs_victim *victim)
{
	struct lanefs_group *group = &domain->d_groups[victim->number];
	struct lanefs_segment *segment = lanefs_segment_of(group, victim->first);

	spin_lock(&group->g_lock);
	if (lanefs_victim_held(segment, victim)) {
		WRITE_ONCE(segment->state, LANEFS_SEGMENT_USED);
		WRITE_ONCE(segment->stuck, segment->used);
		if (!segment->used)
			lanefs_segment_free(domain, segment);
	}
	spin_unlock(&group->g_lock);
}
