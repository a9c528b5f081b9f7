// SPDX-License-Identifier: GPL-2.0-only
/*
 * The segments of a log, and the streams that fill them: each CPU has one in each domain, so that
 * CPUs that share a domain write to different segments. A stream takes the blocks of a free segment
 * in order. Where no segment is free it fills holes: who writes back, with pages locked, never waits
 * for segments to become free.
 *
 * Streams begin behind the first sixteenth of a domain. That is where metadata looks for blocks
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
static void lanefs_segment_take(struct lanefs_domain *domain, struct lanefs_group *group,
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

/* Where streams on this CPU begin: in its collector's part, and each CPU elsewhere. */
static u32 lanefs_part_written(const struct lanefs_domain *domain)
{
	u32 cpus = domain->d_ncollectors * domain->d_sbi->s_domains;

	return lanefs_part(domain, raw_smp_processor_id() % cpus, cpus).begin;
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

/* Adds those with n of LANEFS_VALID_PARTS parts of their blocks in use, rounded up, to segments[n]. */
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

/*
 * Whether a collector empties the segment that the block is in: not locked, with its page in
 * li_writeouts.
 */
bool lanefs_segments_emptied(struct super_block *sb, u64 block)
{
	const struct lanefs_domain *domain = lanefs_block_domain(LANEFS_SB(sb), block);
	u32 number, bit;

	number = div_u64_rem(block - domain->d_layout.base, LANEFS_BITMAP_BITS, &bit);
	return READ_ONCE(lanefs_segment_of(&domain->d_groups[number], bit)->state) ==
	       LANEFS_SEGMENT_VICTIM;
}

/* Whether to begin to collect, or, when that was begun, to go on. */
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

/* The first free segment of the group, from `first` on, is the stream's, whose lock is held. */
static bool lanefs_stream_open(struct lanefs_domain *domain, struct lanefs_stream *stream,
			       u32 number, u32 first)
{
	struct lanefs_group *group = &domain->d_groups[number];
	u64 free;
	u32 i;

	lockdep_assert_held(&stream->st_lock);
	spin_lock(&group->g_lock);
	free = group->g_segments_free & (~0ULL << first);
	if (free) {
		i = __ffs64(free);
		lanefs_segment_take(domain, group, &group->g_segments[i],
				    stream->st_collects ? LANEFS_SEGMENT_TARGET :
							  LANEFS_SEGMENT_OPEN);
		stream->st_block = domain->d_layout.base + (u64)number * LANEFS_BITMAP_BITS +
				   i * LANEFS_SEGMENT_BLOCKS;
	}
	spin_unlock(&group->g_lock);
	return free;
}

/* A free segment for the stream, if there are more than `keep`. */
static bool lanefs_stream_find(struct lanefs_domain *domain, struct lanefs_stream *stream, u32 keep)
{
	unsigned int number;
	u32 first;

	if (lanefs_segments_low(domain, false))
		lanefs_gc_wake(domain);
	if (atomic_read(&domain->d_segments_free) <= keep)
		return false;
	first = lanefs_part_written(domain);
	number = first / LANEFS_SEGMENTS;
	if (lanefs_stream_open(domain, stream, number, first % LANEFS_SEGMENTS))
		return true;
	/* In the end what is in front of the part in its group. */
	first = (number + 1) % domain->d_ngroups;
	for_each_set_bit_wrap(number, domain->d_groups_free, domain->d_ngroups, first)
		if (lanefs_stream_open(domain, stream, number, 0))
			return true;
	return false;
}

/*
 * Under g_lock of the group with number `number`, whose bitmap is in memory: the next block of the
 * stream's segment; at its end the stream has none any more.
 */
static bool lanefs_stream_next(struct lanefs_domain *domain, struct lanefs_stream *stream,
			       u32 number, u64 *block)
{
	u64 first = domain->d_layout.base + (u64)number * LANEFS_BITMAP_BITS;
	struct lanefs_group *group = &domain->d_groups[number];
	u32 bit = stream->st_block - first, at, end = lanefs_segment_end(bit);
	struct lanefs_segment *segment = lanefs_segment_of(group, bit);

	lockdep_assert_held(&group->g_lock);
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
		WRITE_ONCE(segment->state, LANEFS_SEGMENT_USED);
		if (!segment->used)
			lanefs_segment_free(domain, group, segment);
	}
	return at < end;
}

/* Has the bitmap of the stream's segment read, with the stream not locked meanwhile. */
static int lanefs_stream_load(struct lanefs_domain *domain, struct lanefs_stream *stream,
			      u32 number)
{
	int err;

	lockdep_assert_held(&stream->st_lock);
	spin_unlock(&stream->st_lock);
	err = lanefs_group_lock(domain, number);
	if (!err)
		spin_unlock(&domain->d_groups[number].g_lock);
	spin_lock(&stream->st_lock);
	return err;
}

/*
 * The next block of the stream, from those that were taken from the free ones (space.c). In memory
 * only: lanefs_use_blocks() is to follow, or lanefs_give_blocks(). `keep`: so many free segments are
 * left to others. False: then there is none.
 */
bool lanefs_stream_take(struct lanefs_domain *domain, struct lanefs_stream *stream, u32 keep,
			u64 *block)
{
	struct lanefs_group *group;
	bool taken = false, loaded;
	u32 number;
	int err = 0;

	spin_lock(&stream->st_lock);
	while (!taken && !err && (stream->st_block || lanefs_stream_find(domain, stream, keep))) {
		number = div_u64(stream->st_block - domain->d_layout.base, LANEFS_BITMAP_BITS);
		group = &domain->d_groups[number];
		spin_lock(&group->g_lock);
		if (group->g_busy)
			taken = lanefs_stream_next(domain, stream, number, block);
		loaded = group->g_busy;
		spin_unlock(&group->g_lock);
		if (!loaded)
			err = lanefs_stream_load(domain, stream, number);
	}
	spin_unlock(&stream->st_lock);
	return taken;
}

/*
 * Takes a block for this CPU's data, or the next hole; a segment is left to each collector. Errors
 * are those of lanefs_take_blocks().
 */
int lanefs_stream_take_data(struct lanefs_domain *domain, u64 *block)
{
	struct lanefs_stream *stream = &raw_cpu_ptr(domain->d_slots)->s_stream;
	u32 count;
	int err;

	if (lanefs_stream_take(domain, stream, domain->d_segments_kept, block))
		return 0;
	err = lanefs_take_blocks(domain, READ_ONCE(stream->st_hole), 1, block, &count);
	if (err)
		return err;
	WRITE_ONCE(stream->st_hole, *block + 1);
	atomic64_inc(&domain->d_holes);
	return 0;
}
