// SPDX-License-Identifier: GPL-2.0-only
#include "extents.h"

static void set_extent(struct lanefs_extent *extent, u64 logical, u64 length, u64 block,
		       bool unwritten)
{
	extent->ex_logical = cpu_to_le32((u32)logical);
	extent->ex_length = cpu_to_le32((u32)length | (unwritten ? LANEFS_EXTENT_UNWRITTEN : 0));
	extent->ex_block = cpu_to_le64(block);
}

bool lanefs_extents_valid(const struct lanefs_extent *extents, unsigned int count)
{
	u64 end = 0;
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (!lanefs_extent_length(&extents[i]) ||
		    le32_to_cpu(extents[i].ex_logical) < end)
			return false;
		end = lanefs_extent_end(&extents[i]);
		if (end > LANEFS_MAX_FILE_BLOCKS)
			return false;
	}
	return true;
}

int lanefs_extents_find(const struct lanefs_extent *extents, unsigned int count, u32 logical)
{
	unsigned int low = 0, high = count;

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (le32_to_cpu(extents[middle].ex_logical) <= logical)
			low = middle + 1;
		else
			high = middle;
	}
	return (int)low - 1;
}

unsigned int lanefs_index_find(const struct lanefs_index *index, unsigned int count, u64 key)
{
	unsigned int low = 1, high = count;

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (le64_to_cpu(index[middle].ix_key) <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

/* Whether @b continues @a. Domains are apart by their metadata, so none spans two of them. */
static bool contiguous(const struct lanefs_extent *a, const struct lanefs_extent *b)
{
	return lanefs_extent_end(a) == le32_to_cpu(b->ex_logical) &&
	       le64_to_cpu(a->ex_block) + lanefs_extent_length(a) == le64_to_cpu(b->ex_block) &&
	       lanefs_extent_unwritten(a) == lanefs_extent_unwritten(b) &&
	       (u64)lanefs_extent_length(a) + lanefs_extent_length(b) <= LANEFS_EXTENT_MAX;
}

static void lengthen(struct lanefs_extent *extent, const struct lanefs_extent *by)
{
	le32_add(&extent->ex_length, lanefs_extent_length(by));
}

static void open_gap(struct lanefs_extent *extents, unsigned int count, unsigned int at,
		     unsigned int gap)
{
	memmove(&extents[at + gap], &extents[at], (count - at) * sizeof(*extents));
}

static void close_gap(struct lanefs_extent *extents, unsigned int count, unsigned int at,
		      unsigned int gap)
{
	memmove(&extents[at], &extents[at + gap], (count - at - gap) * sizeof(*extents));
}

int lanefs_extents_insert(struct lanefs_extent *extents, unsigned int count, unsigned int room,
			  const struct lanefs_extent *extent)
{
	int before = lanefs_extents_find(extents, count, le32_to_cpu(extent->ex_logical));
	unsigned int at = before + 1;
	bool join_before, join_after;

	if (before >= 0 && lanefs_extent_end(&extents[before]) > le32_to_cpu(extent->ex_logical))
		return -EEXIST;
	if (at < count && lanefs_extent_end(extent) > le32_to_cpu(extents[at].ex_logical))
		return -EEXIST;

	join_before = before >= 0 && contiguous(&extents[before], extent);
	join_after = at < count && contiguous(extent, &extents[at]);
	if (join_before) {
		lengthen(&extents[before], extent);
		if (!join_after || !contiguous(&extents[before], &extents[at]))
			return count;
		lengthen(&extents[before], &extents[at]);
		close_gap(extents, count, at, 1);
		return count - 1;
	}
	if (join_after) {
		u32 length = lanefs_extent_length(&extents[at]);

		extents[at] = *extent;
		le32_add(&extents[at].ex_length, length);
		return count;
	}
	if (count == room)
		return -ENOSPC;
	open_gap(extents, count, at, 1);
	extents[at] = *extent;
	return count + 1;
}

/* The part of @whole from logical block @first to @end - 1. */
static void cut_extent(struct lanefs_extent *part, const struct lanefs_extent *whole, u64 first,
		       u64 end, bool unwritten)
{
	u64 skip = first - le32_to_cpu(whole->ex_logical);

	set_extent(part, first, end - first, le64_to_cpu(whole->ex_block) + skip, unwritten);
}

int lanefs_extents_remove(struct lanefs_extent *extents, unsigned int count, unsigned int room,
			  u32 first, u64 end)
{
	int found = lanefs_extents_find(extents, count, first);
	unsigned int at = found < 0 ? 0 : found;
	unsigned int stop;

	if (at < count && lanefs_extent_end(&extents[at]) <= first)
		at++;
	if (at < count && le32_to_cpu(extents[at].ex_logical) < first) {
		struct lanefs_extent whole = extents[at];
		u64 whole_end = lanefs_extent_end(&whole);
		bool unwritten = lanefs_extent_unwritten(&whole);

		if (whole_end > end) {
			if (count == room)
				return -ENOSPC;
			open_gap(extents, count, at, 1);
			count++;
			cut_extent(&extents[at + 1], &whole, end, whole_end, unwritten);
		}
		cut_extent(&extents[at], &whole, le32_to_cpu(whole.ex_logical), first, unwritten);
		at++;
	}
	for (stop = at; stop < count && lanefs_extent_end(&extents[stop]) <= end; stop++)
		;
	close_gap(extents, count, at, stop - at);
	count -= stop - at;
	if (at < count && le32_to_cpu(extents[at].ex_logical) < end) {
		struct lanefs_extent whole = extents[at];

		cut_extent(&extents[at], &whole, end, lanefs_extent_end(&whole),
			   lanefs_extent_unwritten(&whole));
	}
	return count;
}

/* Whether @extent is for the same blocks as record @at, and continues neither neighbour. */
static bool takes_place(const struct lanefs_extent *extents, unsigned int count, unsigned int at,
			const struct lanefs_extent *extent)
{
	return extents[at].ex_logical == extent->ex_logical &&
	       lanefs_extent_length(&extents[at]) == lanefs_extent_length(extent) &&
	       !(at && contiguous(&extents[at - 1], extent)) &&
	       !(at + 1 < count && contiguous(extent, &extents[at + 1]));
}

int lanefs_extents_replace(struct lanefs_extent *extents, unsigned int count, unsigned int room,
			   const struct lanefs_extent *extent)
{
	u64 first = le32_to_cpu(extent->ex_logical), end = lanefs_extent_end(extent);
	int found = lanefs_extents_find(extents, count, (u32)first);
	unsigned int i = found < 0 ? 0 : found, left = i + 1;

	/* Blocks that are written over at random are extents of their own. */
	if (found >= 0 && takes_place(extents, count, i, extent)) {
		extents[i] = *extent;
		return count;
	}
	/* Of each extent nothing, one side, or both sides stay. */
	for (; i < count && le32_to_cpu(extents[i].ex_logical) < end; i++)
		left += (le32_to_cpu(extents[i].ex_logical) < first) +
			(lanefs_extent_end(&extents[i]) > end);
	if (left + count - i > room)
		return -ENOSPC;
	count = lanefs_extents_remove(extents, count, room, (u32)first, end);
	return lanefs_extents_insert(extents, count, room, extent);
}

/* Joins the extents around and between records @from and @to. */
static unsigned int join(struct lanefs_extent *extents, unsigned int count, unsigned int from,
			 unsigned int to)
{
	unsigned int at = from ? from - 1 : 0;

	while (at + 1 < count && at <= to) {
		if (contiguous(&extents[at], &extents[at + 1])) {
			lengthen(&extents[at], &extents[at + 1]);
			close_gap(extents, count, at + 1, 1);
			count--;
			to = to ? to - 1 : 0;
		} else {
			at++;
		}
	}
	return count;
}

int lanefs_extents_convert(struct lanefs_extent *extents, unsigned int count, unsigned int room,
			   u32 first, u64 end)
{
	int found = lanefs_extents_find(extents, count, first);
	unsigned int from = found < 0 ? 0 : found;
	unsigned int split = 0, at, i;

	if (from < count && lanefs_extent_end(&extents[from]) <= first)
		from++;
	/* Only the first and the last extent can need to be cut; count the records first. */
	for (at = from; at < count && le32_to_cpu(extents[at].ex_logical) < end; at++) {
		if (!lanefs_extent_unwritten(&extents[at]))
			continue;
		split += le32_to_cpu(extents[at].ex_logical) < first;
		split += lanefs_extent_end(&extents[at]) > end;
	}
	if (count + split > room)
		return -ENOSPC;

	for (i = from; i < count && le32_to_cpu(extents[i].ex_logical) < end; i++) {
		struct lanefs_extent whole = extents[i];
		u64 whole_first = le32_to_cpu(whole.ex_logical);
		u64 whole_end = lanefs_extent_end(&whole);

		if (!lanefs_extent_unwritten(&whole))
			continue;
		if (whole_first < first) {
			open_gap(extents, count++, i, 1);
			cut_extent(&extents[i++], &whole, whole_first, first, true);
			whole_first = first;
		}
		if (whole_end > end) {
			open_gap(extents, count++, i, 1);
			cut_extent(&extents[i + 1], &whole, end, whole_end, true);
			whole_end = end;
		}
		cut_extent(&extents[i], &whole, whole_first, whole_end, false);
	}
	return join(extents, count, from, i);
}

int lanefs_extents_split(struct lanefs_extent *extents, unsigned int count, unsigned int room, u32 at)
{
	int found = lanefs_extents_find(extents, count, at);
	struct lanefs_extent whole;
	bool unwritten;

	if (found < 0)
		return count;
	whole = extents[found];
	if (le32_to_cpu(whole.ex_logical) == at || lanefs_extent_end(&whole) <= at)
		return count;
	if (count == room)
		return -ENOSPC;
	unwritten = lanefs_extent_unwritten(&whole);
	open_gap(extents, count, found, 1);
	cut_extent(&extents[found], &whole, le32_to_cpu(whole.ex_logical), at, unwritten);
	cut_extent(&extents[found + 1], &whole, at, lanefs_extent_end(&whole), unwritten);
	return count + 1;
}

unsigned int lanefs_extents_shift(struct lanefs_extent *extents, unsigned int count, u64 first, s64 by)
{
	unsigned int at = count, i;

	while (at && le32_to_cpu(extents[at - 1].ex_logical) >= first)
		at--;
	for (i = at; i < count; i++)
		extents[i].ex_logical = cpu_to_le32((u32)(le32_to_cpu(extents[i].ex_logical) + by));
	return at < count ? join(extents, count, at, at) : count;
}
