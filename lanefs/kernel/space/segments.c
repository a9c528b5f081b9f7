// SPDX-License-Identifier: GPL-2.0-only
/*
 * The segments of a log: their states, and how many are free.
 *
 * Streams (streams.c) begin behind the first sixteenth of a domain. That is where metadata looks for blocks
 * first, as it cannot be moved out of a segment; but where it is full metadata is put anywhere.
 *
 * The rest is divided into parts, one per collector. A collector and the streams of its CPU look there
 * first. So it collects blocks that its CPU has written, which are in its caches and in its node's
 * memory, and seldom remaps a block to which another CPU is writing. Streams of other CPUs begin
 * elsewhere, because each block that is written or freed takes its group's lock.
 */
#include <linux/slab.h>

#include "space/segments.h"

#define LANEFS_METADATA_PART	16

/* Under g_lock: no bit of the segment is set, and it is no stream's. */
void lanefs_segment_free(struct lanefs_domain *domain, struct lanefs_group *group,
			 struct lanefs_segment *segment)
{
	lockdep_assert_held(&group->g_lock);
	WRITE_ONCE(segment->state, LANEFS_SEGMENT_FREE);
	if (!group->g_segments_free)
		set_bit(group - domain->d_groups, domain->d_groups_free);
	group->g_segments_free |= BIT_ULL(segment - group->g_segments);
	atomic_inc(&domain->d_segments_free);
	if (wq_has_sleeper(&domain->d_wait_segments))
		wake_up_all(&domain->d_wait_segments);
}

/* Under g_lock: the segment, which was free, gets this state. */
void lanefs_segment_take(struct lanefs_domain *domain, struct lanefs_group *group,
			 struct lanefs_segment *segment, u8 state)
{
	lockdep_assert_held(&group->g_lock);
	WRITE_ONCE(segment->state, state);
	group->g_segments_free &= ~BIT_ULL(segment - group->g_segments);
	if (!group->g_segments_free)
		clear_bit(group - domain->d_groups, domain->d_groups_free);
	atomic_dec(&domain->d_segments_free);
}

/* ablate=lsu: what is known of all segments of the domain is one thing. Whether it is locked now. */
bool lanefs_segments_lock(struct lanefs_domain *domain)
{
	if (!lanefs_ablated(domain->d_sbi, LANEFS_ABLATE_LSU))
		return false;
	spin_lock(&domain->d_segments_lock);
	return true;
}

void lanefs_segments_unlock(struct lanefs_domain *domain, bool locked)
{
	if (locked)
		spin_unlock(&domain->d_segments_lock);
}

/* The nth of `parts` parts of the domain. */
struct lanefs_part lanefs_part(const struct lanefs_domain *domain, u32 nth, u32 parts)
{
	u64 all = domain->d_log_segments;

	return (struct lanefs_part){
		.begin = domain->d_log_first + (u32)div_u64(all * nth, parts),
		.end = domain->d_log_first + (u32)div_u64(all * (nth + 1), parts),
	};
}

/* Where the streams of a domain begin, and its segments, which are not counted yet. */
int lanefs_segments_start(struct lanefs_domain *domain)
{
	u64 base = domain->d_layout.base, data = domain->d_layout.data;
	u32 whole, i;

	if (!lanefs_is_log(domain->d_sbi->s_vfs))
		return 0;
	domain->d_log_start = data + div_u64(domain->d_layout.end - data, LANEFS_METADATA_PART);
	domain->d_log_first = (u32)div_u64(domain->d_log_start - base + LANEFS_SEGMENT_BLOCKS - 1,
					   LANEFS_SEGMENT_BLOCKS);
	whole = (u32)div_u64(domain->d_layout.end - base, LANEFS_SEGMENT_BLOCKS);
	domain->d_log_segments = whole - min(whole, domain->d_log_first);
	domain->d_segments = kvcalloc(domain->d_ngroups,
				      LANEFS_SEGMENTS * sizeof(*domain->d_segments), GFP_KERNEL);
	domain->d_groups_free = kvcalloc(BITS_TO_LONGS(domain->d_ngroups), sizeof(long), GFP_KERNEL);
	if (!domain->d_segments || !domain->d_groups_free)
		return -ENOMEM;
	for (i = 0; i < domain->d_ngroups; i++)
		domain->d_groups[i].g_segments = domain->d_segments + i * LANEFS_SEGMENTS;
	return 0;
}

void lanefs_segments_stop(struct lanefs_domain *domain)
{
	kvfree(domain->d_segments);
	kvfree(domain->d_groups_free);
	domain->d_segments = NULL;
	domain->d_groups_free = NULL;
}

/* Under g_lock: the segments of a group that is counted, by its bitmap. */
void lanefs_segments_see(struct lanefs_domain *domain, u32 number, const void *bits)
{
	u64 first = domain->d_layout.base + (u64)number * LANEFS_BITMAP_BITS;
	struct lanefs_group *group = &domain->d_groups[number];
	struct lanefs_segment *segment;
	u32 bit, count;

	for (bit = 0; group->g_segments && bit < LANEFS_BITMAP_BITS; bit += LANEFS_SEGMENT_BLOCKS) {
		segment = lanefs_segment_of(group, bit);
		count = bit < group->g_bits ?
			min_t(u32, group->g_bits - bit, LANEFS_SEGMENT_BLOCKS) : 0;
		WRITE_ONCE(segment->used, count - lanefs_zero_bits(bits + bit / BITS_PER_BYTE, count));
		if (count < LANEFS_SEGMENT_BLOCKS || first + bit < domain->d_log_start)
			continue;
		if (segment->used)
			WRITE_ONCE(segment->state, LANEFS_SEGMENT_USED);
		else
			lanefs_segment_free(domain, group, segment);
	}
}

/**
 * lanefs_segments_valid() - count segments by the part of their blocks in use
 * @domain: the domain, of a log
 * @segments: LANEFS_VALID_PARTS + 1 counts, to which they are added: segments[n] of those with n
 *	parts in use, rounded up
 *
 * Segments that no stream may have do not count.
 *
 * Context: May sleep; without locks, so what it sees may be old.
 */
void lanefs_segments_valid(const struct lanefs_domain *domain, u64 *segments)
{
	const struct lanefs_segment *segment;
	u32 number, i, used;

	for (number = 0; number < domain->d_ngroups; number++) {
		for (i = 0; i < LANEFS_SEGMENTS; i++) {
			segment = &domain->d_groups[number].g_segments[i];
			if (READ_ONCE(segment->state) == LANEFS_SEGMENT_OTHER)
				continue;
			used = READ_ONCE(segment->used) * LANEFS_VALID_PARTS;
			segments[DIV_ROUND_UP(used, LANEFS_SEGMENT_BLOCKS)]++;
		}
		cond_resched();
	}
}

/* Under g_lock: if the bit is of a segment that a collector empties or fills, the first one behind; or 0. */
u32 lanefs_segments_taken(const struct lanefs_group *group, u32 bit)
{
	u8 state;

	lockdep_assert_held(&group->g_lock);
	if (bit >= group->g_bits)
		return 0;
	state = lanefs_segment_of(group, bit)->state;
	if (state != LANEFS_SEGMENT_VICTIM && state != LANEFS_SEGMENT_TARGET)
		return 0;
	return lanefs_segment_end(bit);
}

/**
 * lanefs_segments_low() - tell whether collectors are to work in a domain
 * @domain: the domain, of a log
 * @collecting: they do, and may stop only when more segments are free
 *
 * Context: Any; without locks.
 * Return: whether they are; false as long as the free segments are not counted.
 */
bool lanefs_segments_low(const struct lanefs_domain *domain, bool collecting)
{
	u32 part = div_u64((u64)domain->d_log_segments * READ_ONCE(domain->d_sbi->s_gc_low), 100);
	u32 low = part + domain->d_segments_kept;
	u32 enough = low + part / 2 + domain->d_segments_kept;

	return lanefs_counted(domain) &&
	       atomic_read(&domain->d_segments_free) < (collecting ? enough : low);
}

/* Under g_lock: bits were set, or cleared. */
void lanefs_segments_count(struct lanefs_domain *domain, struct lanefs_group *group, u32 bit,
			   u32 count, bool set)
{
	bool locked = lanefs_segments_lock(domain);
	struct lanefs_segment *segment;
	u32 part;

	lockdep_assert_held(&group->g_lock);
	for (; count; bit += part, count -= part) {
		part = min_t(u32, count, LANEFS_SEGMENT_BLOCKS - bit % LANEFS_SEGMENT_BLOCKS);
		segment = lanefs_segment_of(group, bit);
		WRITE_ONCE(segment->used, segment->used + (set ? part : -part));
		WRITE_ONCE(segment->changed, jiffies);
		WRITE_ONCE(segment->stuck, false);
		if (set && segment->state == LANEFS_SEGMENT_VICTIM) {
			WRITE_ONCE(segment->state, LANEFS_SEGMENT_USED);
		} else if (segment->state == LANEFS_SEGMENT_FREE) {
			lanefs_segment_take(domain, group, segment, LANEFS_SEGMENT_USED);
		} else if (segment->state == LANEFS_SEGMENT_USED && !segment->used) {
			lanefs_segment_free(domain, group, segment);
		}
	}
	lanefs_segments_unlock(domain, locked);
	if (!set && READ_ONCE(domain->d_barren))
		WRITE_ONCE(domain->d_barren, false);
}

/* Under g_lock: the block from bit `bit` on is mapped now, so it can be moved. */
void lanefs_segments_used(struct lanefs_group *group, u32 bit)
{
	lockdep_assert_held(&group->g_lock);
	WRITE_ONCE(lanefs_segment_of(group, bit)->stuck, false);
}
