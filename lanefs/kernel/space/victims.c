// SPDX-License-Identifier: GPL-2.0-only
/*
 * Victim selection: which segment of a log a collector takes, and how it keeps it. Many collectors
 * search at the same time without locks, and take what they find under its group's lock.
 *
 * A look at all segments of a large domain is a good part of a collection. So a collector looks at
 * LANEFS_LOOK groups at a time, the next ones each time, and takes the best that is there: with that
 * many choices it is hardly worse than the best of all (Van Houdt, SIGMETRICS 2013). It looks further
 * only where there is none.
 */
#include "space/segments.h"

#define LANEFS_LOOK		64	/* groups, with up to 4032 segments */
#define LANEFS_ELSEWHERE	32	/* a victim of another part costs one of so many more */

/* Where this CPU's collector looks first: one of them serves the whole domain, or each has a part. */
static struct lanefs_part lanefs_part_collected(const struct lanefs_domain *domain)
{
	bool single = lanefs_ablated(domain->d_sbi, LANEFS_ABLATE_GC);
	u32 collectors = single ? 1 : domain->d_ncollectors;

	return lanefs_part(domain, raw_smp_processor_id() / domain->d_sbi->s_domains % collectors,
			   collectors);
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
 * The segment of the group that costs least, if that is less than *least. Without locks: what it sees
 * may be old, so another one might cost less (ScaleLFS, section 4.5.2).
 */
static void lanefs_victim_look(struct lanefs_domain *domain, u32 number,
			       const struct lanefs_part *part, struct lanefs_victim *victim,
			       u64 *least)
{
	struct lanefs_group *group = &domain->d_groups[number];
	const struct lanefs_segment *segment;
	u32 i, at, used;
	u64 cost;

	for (i = 0; i < LANEFS_SEGMENTS; i++) {
		at = number * LANEFS_SEGMENTS + i;
		segment = &group->g_segments[i];
		used = READ_ONCE(segment->used);
		if (!lanefs_segment_candidate(segment) || used >= LANEFS_VICTIM_MOST)
			continue;
		cost = lanefs_victim_cost(domain->d_sbi, used, READ_ONCE(segment->changed));
		if (at < part->begin || at >= part->end)
			cost += cost / LANEFS_ELSEWHERE;
		if (cost >= *least)
			continue;
		victim->number = number;
		victim->first = i * LANEFS_SEGMENT_BLOCKS;
		*least = cost;
	}
}

/* The same for `count` groups from group `from` on; whether there is one. */
static bool lanefs_victim_least(struct lanefs_domain *domain, u32 from, u32 count,
				const struct lanefs_part *part, struct lanefs_victim *victim)
{
	bool locked = lanefs_segments_lock(domain);
	u64 least = U64_MAX;

	for (; count; count--, from++)
		lanefs_victim_look(domain, from % domain->d_ngroups, part, victim, &least);
	lanefs_segments_unlock(domain, locked);
	return least != U64_MAX;
}

/* Whether the segment that was found is the collector's now: another may have been faster. */
static bool lanefs_victim_catch(struct lanefs_domain *domain, struct lanefs_victim *victim)
{
	struct lanefs_group *group = &domain->d_groups[victim->number];
	struct lanefs_segment *segment = lanefs_segment_of(group, victim->first);
	bool caught;

	spin_lock(&group->g_lock);
	caught = segment->state == LANEFS_SEGMENT_USED;
	if (caught) {
		WRITE_ONCE(segment->state, LANEFS_SEGMENT_VICTIM);
		victim->turn = ++segment->turn;
	}
	spin_unlock(&group->g_lock);
	return caught;
}

/* How many groups a look takes: all where one look waits for another on purpose. */
static u32 lanefs_victim_groups(const struct lanefs_domain *domain)
{
	return lanefs_ablated(domain->d_sbi, LANEFS_ABLATE_CVS | LANEFS_ABLATE_LSU) ?
	       domain->d_ngroups : LANEFS_LOOK;
}

/* Takes the segment with the lowest cost of some groups, or of the next; false: none is worth it. */
static bool lanefs_victim_find(struct lanefs_domain *domain, struct lanefs_victim *victim)
{
	struct lanefs_part part = lanefs_part_collected(domain);
	u32 begin = part.begin / LANEFS_SEGMENTS, end = DIV_ROUND_UP(part.end, LANEFS_SEGMENTS);
	u32 look = lanefs_victim_groups(domain), from = victim->next, seen = 0, count;

	if (from < begin || from >= end)
		from = begin;
	while (seen < domain->d_ngroups) {
		count = min(look, domain->d_ngroups - seen);
		if (!lanefs_victim_least(domain, from, count, &part, victim)) {
			seen += count;
		} else if (lanefs_victim_catch(domain, victim)) {
			victim->next = from + count;
			return true;
		}
		/* Also where another collector was faster: it looks at these groups, too. */
		from = (from + count) % domain->d_ngroups;
		cond_resched();
	}
	return false;
}

/**
 * lanefs_victim_take() - take a segment that costs little to collect
 * @domain: whose segments
 * @victim: gets the segment; goes on where its last look ended
 *
 * It is the best of LANEFS_LOOK groups, or, where none is worth it there, of the next ones.
 *
 * Context: In a collector, on its CPU; takes g_lock, and may sleep. With ablate=cvs one at a time
 * (d_victims_mutex).
 * Return: whether one is worth it.
 */
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

/**
 * lanefs_victim_used() - tell which blocks of a part of a segment are in use
 * @domain: whose segment
 * @number: of its group
 * @bit: of the group, of the first block
 * @count: how many
 * @used: a bit for each, from @bit on
 *
 * Also those that are being written, or whose freeing is not stable.
 *
 * Context: Takes g_lock; may sleep for the read of the bitmap.
 * Return: 0 or the error of that.
 */
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
static bool lanefs_victim_held(const struct lanefs_group *group,
			       const struct lanefs_victim *victim)
{
	const struct lanefs_segment *segment = lanefs_segment_of(group, victim->first);

	lockdep_assert_held(&group->g_lock);
	return segment->state == LANEFS_SEGMENT_VICTIM && segment->turn == victim->turn;
}

/**
 * lanefs_victim_whole() - tell whether a victim is the collector's still
 * @domain: whose segment
 * @victim: of lanefs_victim_take()
 *
 * Context: Takes g_lock.
 * Return: whether no block of it was taken since.
 */
bool lanefs_victim_whole(struct lanefs_domain *domain, const struct lanefs_victim *victim)
{
	struct lanefs_group *group = &domain->d_groups[victim->number];
	bool whole;

	spin_lock(&group->g_lock);
	whole = lanefs_victim_held(group, victim);
	spin_unlock(&group->g_lock);
	return whole;
}

/**
 * lanefs_victim_give() - give up a victim
 * @domain: whose segment
 * @victim: of lanefs_victim_take()
 *
 * Its blocks in use cannot be moved, or become free when a transaction is stable. Does nothing if a
 * block of it was taken since.
 *
 * Context: Takes g_lock.
 */
void lanefs_victim_give(struct lanefs_domain *domain, const struct lanefs_victim *victim)
{
	struct lanefs_group *group = &domain->d_groups[victim->number];
	struct lanefs_segment *segment = lanefs_segment_of(group, victim->first);

	spin_lock(&group->g_lock);
	if (lanefs_victim_held(group, victim)) {
		WRITE_ONCE(segment->state, LANEFS_SEGMENT_USED);
		WRITE_ONCE(segment->stuck, segment->used);
		if (!segment->used)
			lanefs_segment_free(domain, group, segment);
	}
	spin_unlock(&group->g_lock);
}

/**
 * lanefs_segments_emptied() - tell whether a collector empties the segment that a block is in
 * @sb: the file system, a log
 * @block: one of data
 *
 * A collector that begins afterwards waits for the page (lanefs_writeout_wait()).
 *
 * Context: With the block's page in li_writeouts; takes no lock.
 * Return: whether one does.
 */
bool lanefs_segments_emptied(struct super_block *sb, u64 block)
{
	const struct lanefs_domain *domain = lanefs_block_domain(LANEFS_SB(sb), block);
	u32 number, bit;

	number = div_u64_rem(block - domain->d_layout.base, LANEFS_BITMAP_BITS, &bit);
	return READ_ONCE(lanefs_segment_of(&domain->d_groups[number], bit)->state) ==
	       LANEFS_SEGMENT_VICTIM;
}
