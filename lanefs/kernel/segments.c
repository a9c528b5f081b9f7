// SPDX-License-Identifier: GPL-2.0-only
/*
 * The segments of a log, and the streams that fill them: each CPU has one in each domain, so that
 * CPUs that share a domain write to different segments. A stream takes the blocks of a free segment
 * in order. Where no segment is free it fills holes: who writes back, with pages locked, never waits
 * for segments to become free.
 *
 * Streams begin behind the first sixteenth of a domain. That is where metadata looks for blocks
 * first, as it cannot be moved out of a segment; but where it is full metadata is put anywhere.
 */
#include <linux/slab.h>

#include "lanefs.h"

#define LANEFS_METADATA_PART	16
#define LANEFS_VICTIM_MOST	(LANEFS_SEGMENT_BLOCKS - LANEFS_SEGMENT_BLOCKS / 32)

static struct lanefs_segment *lanefs_segment_of(const struct lanefs_group *group, u32 bit)
{
	return &group->g_segments[bit / LANEFS_SEGMENT_BLOCKS];
}

/* Under g_lock: no bit of the segment is set, and it is no stream's. */
static void lanefs_segment_free(struct lanefs_domain *domain, struct lanefs_segment *segment)
{
	segment->state = LANEFS_SEGMENT_FREE;
	atomic_inc(&domain->d_segments_free);
}

/* Where the streams of a domain begin. */
void lanefs_segments_start(struct lanefs_domain *domain)
{
	u64 data = domain->d_layout.data;

	if (lanefs_is_log(domain->d_sbi->s_vfs))
		domain->d_log_start = data + div_u64(domain->d_layout.end - data,
						     LANEFS_METADATA_PART);
}

/* Of a group whose bits are there, but not in use yet. */
int lanefs_segments_load(struct lanefs_domain *domain, u32 number)
{
	u64 first = domain->d_layout.base + (u64)number * LANEFS_BITMAP_BITS;
	struct lanefs_group *group = &domain->d_groups[number];
	struct lanefs_segment *segment;
	u32 bit, at, end;

	if (!domain->d_log_start)
		return 0;
	group->g_segments = kcalloc(LANEFS_SEGMENTS, sizeof(*group->g_segments), GFP_KERNEL);
	if (!group->g_segments)
		return -ENOMEM;
	for (bit = 0; bit < LANEFS_BITMAP_BITS; bit += LANEFS_SEGMENT_BLOCKS) {
		segment = lanefs_segment_of(group, bit);
		end = min_t(u32, bit + LANEFS_SEGMENT_BLOCKS, group->g_bits);
		for (at = bit; at < end; at++)
			segment->used += test_bit_le(at, group->g_busy);
		if (bit + LANEFS_SEGMENT_BLOCKS > group->g_bits || first + bit < domain->d_log_start)
			segment->state = LANEFS_SEGMENT_OTHER;
		else if (!segment->used)
			lanefs_segment_free(domain, segment);
		domain->d_log_segments += segment->state != LANEFS_SEGMENT_OTHER;
	}
	return 0;
}

/* Under g_lock: if the bit is a victim's, the first one behind that; else 0. */
u32 lanefs_segments_victim(const struct lanefs_group *group, u32 bit)
{
	if (bit >= group->g_bits ||
	    lanefs_segment_of(group, bit)->state != LANEFS_SEGMENT_VICTIM)
		return 0;
	return lanefs_segment_end(bit);
}

/* Free segments that are left to the collectors: one each, where there are enough. */
static u32 lanefs_segments_kept(const struct lanefs_domain *domain)
{
	return min(domain->d_ncollectors, domain->d_log_segments / 8);
}

/* Whether to begin to collect, or, when that was begun, to go on. */
bool lanefs_segments_low(const struct lanefs_domain *domain, bool collecting)
{
	u32 part = domain->d_log_segments * READ_ONCE(domain->d_sbi->s_gc_low) / 100;
	u32 low = part + lanefs_segments_kept(domain);
	u32 enough = low + part / 2 + lanefs_segments_kept(domain);

	return atomic_read(&domain->d_segments_free) < (collecting ? enough : low);
}

/* The segment of the group with the least in use, if that is less than *least. */
static void lanefs_victim_look(struct lanefs_domain *domain, u32 number,
			       struct lanefs_victim *victim, u32 *least)
{
	struct lanefs_group *group = &domain->d_groups[number];
	struct lanefs_segment *segment;
	u32 i;

	spin_lock(&group->g_lock);
	for (i = 0; i < LANEFS_SEGMENTS; i++) {
		segment = &group->g_segments[i];
		if (segment->state != LANEFS_SEGMENT_USED || segment->stuck ||
		    segment->used >= *least)
			continue;
		victim->number = number;
		victim->first = i * LANEFS_SEGMENT_BLOCKS;
		*least = segment->used;
	}
	spin_unlock(&group->g_lock);
}

/* The segment with the least in use is a collector's (greedy); false: none is worth it. */
bool lanefs_victim_take(struct lanefs_domain *domain, struct lanefs_victim *victim)
{
	struct lanefs_segment *segment;
	struct lanefs_group *group;
	bool taken = false;
	u32 i, least;

	while (!taken) {
		least = LANEFS_VICTIM_MOST;
		for (i = 0; i < domain->d_ngroups; i++)
			lanefs_victim_look(domain, i, victim, &least);
		if (least == LANEFS_VICTIM_MOST)
			return false;
		group = &domain->d_groups[victim->number];
		segment = lanefs_segment_of(group, victim->first);
		spin_lock(&group->g_lock);
		/* Another collector may have been faster. */
		taken = segment->state == LANEFS_SEGMENT_USED;
		if (taken) {
			segment->state = LANEFS_SEGMENT_VICTIM;
			victim->turn = ++segment->turn;
		}
		spin_unlock(&group->g_lock);
	}
	return true;
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

/* What of it is in use now cannot be moved, or is freed by a transaction that is not stable. */
void lanefs_victim_give(struct lanefs_domain *domain, const struct lanefs_victim *victim)
{
	struct lanefs_group *group = &domain->d_groups[victim->number];
	struct lanefs_segment *segment = lanefs_segment_of(group, victim->first);

	spin_lock(&group->g_lock);
	if (lanefs_victim_held(segment, victim)) {
		segment->state = LANEFS_SEGMENT_USED;
		segment->stuck = segment->used;
		if (!segment->used)
			lanefs_segment_free(domain, segment);
	}
	spin_unlock(&group->g_lock);
}

/* Under g_lock: bits were set, or cleared. */
void lanefs_segments_count(struct lanefs_domain *domain, struct lanefs_group *group, u32 bit,
			   u32 count, bool set)
{
	struct lanefs_segment *segment;
	u32 part;

	for (; count; bit += part, count -= part) {
		part = min_t(u32, count, LANEFS_SEGMENT_BLOCKS - bit % LANEFS_SEGMENT_BLOCKS);
		segment = lanefs_segment_of(group, bit);
		segment->used += set ? part : -part;
		segment->stuck = false;
		if (set && segment->state == LANEFS_SEGMENT_VICTIM) {
			segment->state = LANEFS_SEGMENT_USED;
		} else if (segment->state == LANEFS_SEGMENT_FREE) {
			segment->state = LANEFS_SEGMENT_USED;
			atomic_dec(&domain->d_segments_free);
		} else if (segment->state == LANEFS_SEGMENT_USED && !segment->used) {
			lanefs_segment_free(domain, segment);
		}
	}
}

/* Under g_lock: the block from bit `bit` on is mapped now, so it can be moved. */
void lanefs_segments_used(struct lanefs_group *group, u32 bit)
{
	lanefs_segment_of(group, bit)->stuck = false;
}

/* The first free segment of the group is the stream's, whose lock is held. */
static bool lanefs_stream_open(struct lanefs_domain *domain, struct lanefs_stream *stream,
			       u32 number)
{
	struct lanefs_group *group = &domain->d_groups[number];
	u32 i;

	spin_lock(&group->g_lock);
	for (i = 0; i < LANEFS_SEGMENTS; i++)
		if (group->g_segments[i].state == LANEFS_SEGMENT_FREE)
			break;
	if (i < LANEFS_SEGMENTS) {
		group->g_segments[i].state = LANEFS_SEGMENT_OPEN;
		atomic_dec(&domain->d_segments_free);
		stream->st_block = domain->d_layout.base + (u64)number * LANEFS_BITMAP_BITS +
				   i * LANEFS_SEGMENT_BLOCKS;
	}
	spin_unlock(&group->g_lock);
	return i < LANEFS_SEGMENTS;
}

/* A free segment for the stream, if there are more than `keep`. */
static bool lanefs_stream_find(struct lanefs_domain *domain, struct lanefs_stream *stream, u32 keep)
{
	u32 number;

	if (lanefs_segments_low(domain, false))
		lanefs_collect(domain);
	if (atomic_read(&domain->d_segments_free) <= keep)
		return false;
	for (number = 0; number < domain->d_ngroups; number++)
		if (lanefs_stream_open(domain, stream, number))
			return true;
	return false;
}

/* The next block of the stream's segment; at its end the stream has none any more. */
static bool lanefs_stream_next(struct lanefs_domain *domain, struct lanefs_stream *stream,
			       u64 *block)
{
	struct lanefs_segment *segment;
	struct lanefs_group *group;
	u32 number, bit, at, end;

	number = div_u64_rem(stream->st_block - domain->d_layout.base, LANEFS_BITMAP_BITS, &bit);
	end = lanefs_segment_end(bit);
	group = &domain->d_groups[number];
	segment = lanefs_segment_of(group, bit);
	spin_lock(&group->g_lock);
	/* Where it was full, others may have filled holes of it. */
	at = find_next_zero_bit_le(group->g_busy, end, bit);
	if (at < end) {
		*block = stream->st_block + at - bit;
		lanefs_group_mark(domain, group, at, 1);
	}
	if (at + 1 < end) {
		stream->st_block = *block + 1;
	} else {
		stream->st_block = 0;
		segment->state = LANEFS_SEGMENT_USED;
		if (!segment->used)
			lanefs_segment_free(domain, segment);
	}
	spin_unlock(&group->g_lock);
	return at < end;
}

/*
 * The next block of the stream, from those that were taken from the free ones (space.c). In memory
 * only: lanefs_use_blocks() is to follow, or lanefs_give_blocks(). `keep`: so many free segments are
 * left to others. False: then there is none.
 */
bool lanefs_stream_take(struct lanefs_domain *domain, struct lanefs_stream *stream, u32 keep,
			u64 *block)
{
	bool taken = false;

	spin_lock(&stream->st_lock);
	while (!taken && (stream->st_block || lanefs_stream_find(domain, stream, keep)))
		taken = lanefs_stream_next(domain, stream, block);
	spin_unlock(&stream->st_lock);
	return taken;
}

/* The same for this CPU's data, or the next hole: a segment is left to each collector. */
bool lanefs_data_take(struct lanefs_domain *domain, u64 *block)
{
	struct lanefs_stream *stream = &raw_cpu_ptr(domain->d_slots)->s_stream;
	u32 count;

	if (lanefs_stream_take(domain, stream, lanefs_segments_kept(domain), block))
		return true;
	if (!lanefs_take_blocks(domain, READ_ONCE(stream->st_hole), 1, block, &count))
		return false;
	WRITE_ONCE(stream->st_hole, *block + 1);
	atomic64_inc(&domain->d_holes);
	return true;
}
