// SPDX-License-Identifier: GPL-2.0-only
/*
 * The streams that fill the segments of a log: each CPU has one in each domain, so that CPUs that
 * share a domain write to different segments. A stream takes the blocks of a free segment in order.
 * Where no segment is free it fills holes: who writes back, with pages locked, never waits for
 * segments to become free.
 */
#include "space/segments.h"

/* Where streams on this CPU begin: in its collector's part, and each CPU elsewhere. */
static u32 lanefs_part_written(const struct lanefs_domain *domain)
{
	u32 cpus = domain->d_ncollectors * domain->d_sbi->s_domains;

	return lanefs_part(domain, raw_smp_processor_id() % cpus, cpus).begin;
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

/**
 * lanefs_stream_take() - take the next block of a stream's segment, or the first of a new one
 * @domain: whose block
 * @stream: the stream
 * @keep: so many free segments are left to others
 * @block: its number
 *
 * In memory only: lanefs_use_blocks() is to follow, or lanefs_give_blocks().
 *
 * Context: The caller has taken a block from the count of free ones. Takes st_lock, and g_lock
 * within; sleeps without them for the read of a bitmap.
 * Return: whether there is one; false: no segment is free, or its bitmap cannot be read.
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

/**
 * lanefs_stream_take_data() - take a block for this CPU's data
 * @domain: whose block
 * @block: its number
 *
 * From the CPU's stream, and where no segment is free but those kept for collectors, the next hole.
 *
 * Context: As lanefs_stream_take().
 * Return: 0 or the error of lanefs_take_blocks().
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
