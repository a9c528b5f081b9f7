// SPDX-License-Identifier: GPL-2.0-only
/*
 * The extent map of a regular file. The caller holds li_tree_sem, for writing where it changes.
 * No extent crosses the border between two leaves, so each change is one of a leaf.
 */
#include "core/extents.h"
#include "tree/tree.h"

struct lanefs_records {
	struct lanefs_extent *extents;
	unsigned int count;
	unsigned int room;
};

static struct lanefs_records lanefs_records_of(struct inode *inode, const struct lanefs_path *path)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_header *header;

	if (!path->p_level)
		return (struct lanefs_records){ (struct lanefs_extent *)li->li_root, li->li_count,
						LANEFS_ROOT_RECORDS };
	header = lanefs_buf_header(path->p_buf[0]);
	return (struct lanefs_records){ (struct lanefs_extent *)(header + 1),
					le16_to_cpu(header->lh_count), LANEFS_NODE_RECORDS };
}

/* The leaf at the end of the path, which was changed, has so many records. */
static void lanefs_records_changed(struct inode *inode, const struct lanefs_path *path,
				   unsigned int count)
{
	struct lanefs_inode *li = LANEFS_I(inode);

	WRITE_ONCE(li->li_map_seq, li->li_map_seq + 1);
	if (path->p_level)
		lanefs_buf_header(path->p_buf[0])->lh_count = cpu_to_le16(count);
	else
		li->li_count = count;
}

static int lanefs_map_fill(struct inode *inode, const struct lanefs_extent *extent,
			   struct lanefs_map *map)
{
	struct lanefs_sb *sbi = LANEFS_SB(inode->i_sb);
	struct lanefs_domain *domain;

	map->logical = le32_to_cpu(extent->ex_logical);
	map->block = le64_to_cpu(extent->ex_block);
	map->length = lanefs_extent_length(extent);
	map->unwritten = lanefs_extent_unwritten(extent);
	map->delayed = false;
	map->fresh = false;
	domain = lanefs_block_domain(sbi, map->block);
	if (domain && map->block + map->length <= domain->d_layout.end)
		return 0;
	lanefs_error(sbi, "inode %llu: an extent maps blocks %llu+%llu, outside the data area", lanefs_number(inode), map->block,
		     map->length);
	return -EUCLEAN;
}

/**
 * lanefs_map_find() - look up a logical block
 * @inode: the file
 * @logical: its block
 * @map: the rest of an extent, or of a hole, from there on
 *
 * Context: Under li_tree_sem.
 * Return: 0, -EUCLEAN: the extent is damaged, or the error of a read.
 */
int lanefs_map_find(struct inode *inode, u64 logical, struct lanefs_map *map)
{
	struct lanefs_records records;
	struct lanefs_path path;
	u64 end, skip;
	int at, err;

	err = lanefs_tree_find(inode, logical, &path);
	if (err)
		return err;
	records = lanefs_records_of(inode, &path);
	at = lanefs_extents_find(records.extents, records.count, logical);
	if (at >= 0 && logical < lanefs_extent_end(&records.extents[at])) {
		err = lanefs_map_fill(inode, &records.extents[at], map);
		if (!err && lanefs_extent_end(&records.extents[at]) > path.p_next) {
			lanefs_error(LANEFS_SB(inode->i_sb), "inode %llu: an extent crosses the end of its leaf",
				     lanefs_number(inode));
			err = -EUCLEAN;
		}
		skip = logical - map->logical;
		map->logical = logical;
		map->block += skip;
		map->length -= skip;
	} else {
		end = min_t(u64, path.p_next, LANEFS_MAX_FILE_BLOCKS);
		if (at + 1 < records.count)
			end = le32_to_cpu(records.extents[at + 1].ex_logical);
		*map = (struct lanefs_map){ .logical = logical, .length = end - logical };
	}
	lanefs_path_put(&path);
	return err;
}

/**
 * lanefs_map_last() - look up the last extent of a file
 * @inode: the file
 * @map: the extent; length 0: there is none
 *
 * Context: Under li_tree_sem.
 * Return: 0, -EUCLEAN: the extent is damaged, or the error of a read.
 */
int lanefs_map_last(struct inode *inode, struct lanefs_map *map)
{
	struct lanefs_records records;
	struct lanefs_path path;
	int err;

	*map = (struct lanefs_map){};
	err = lanefs_tree_find(inode, U64_MAX, &path);
	if (err)
		return err;
	records = lanefs_records_of(inode, &path);
	if (records.count)
		err = lanefs_map_fill(inode, &records.extents[records.count - 1], map);
	lanefs_path_put(&path);
	return err;
}

enum lanefs_change { LANEFS_INSERT, LANEFS_REPLACE, LANEFS_REMOVE, LANEFS_CONVERT, LANEFS_SPLIT };

static int lanefs_records_change(struct lanefs_records *records, enum lanefs_change change,
				 const struct lanefs_map *map)
{
	struct lanefs_extent extent = {
		.ex_logical = cpu_to_le32(map->logical),
		.ex_length = cpu_to_le32(map->length |
					 (map->unwritten ? LANEFS_EXTENT_UNWRITTEN : 0)),
		.ex_block = cpu_to_le64(map->block),
	};
	u64 end = map->logical + map->length;

	switch (change) {
	case LANEFS_INSERT:
		return lanefs_extents_insert(records->extents, records->count, records->room,
					     &extent);
	case LANEFS_REPLACE:
		return lanefs_extents_replace(records->extents, records->count, records->room,
					      &extent);
	case LANEFS_REMOVE:
		return lanefs_extents_remove(records->extents, records->count, records->room,
					     map->logical, end);
	case LANEFS_SPLIT:
		return lanefs_extents_split(records->extents, records->count, records->room,
					    map->logical);
	default:
		return lanefs_extents_convert(records->extents, records->count, records->room,
					      map->logical, end);
	}
}

/* Does the change in the leaf that has its beginning, and cuts map->length to what that covers. */
static int lanefs_leaf_change(struct lanefs_handle *h, struct inode *inode,
			      enum lanefs_change change, struct lanefs_map *map)
{
	const unsigned int size = 2 * sizeof(struct lanefs_extent);
	u64 length = map->length;
	struct lanefs_records records;
	struct lanefs_path path;
	int count, err;

	err = lanefs_tree_find(inode, map->logical, &path);
	if (err)
		return err;
	if (path.p_level)
		lanefs_buf_join(h, path.p_buf[0]);
	map->length = min(length, path.p_next - map->logical);
	records = lanefs_records_of(inode, &path);
	count = lanefs_records_change(&records, change, map);
	if (count == -ENOSPC) {
		lanefs_path_put(&path);
		err = lanefs_tree_find_room(h, inode, map->logical, size, &path);
		if (err)
			return err;
		map->length = min(length, path.p_next - map->logical);
		records = lanefs_records_of(inode, &path);
		count = lanefs_records_change(&records, change, map);
	}
	if (count >= 0) {
		lanefs_records_changed(inode, &path, count);
		if (!count && path.p_level)
			err = lanefs_tree_drop_leaf(h, inode, &path);
	} else {
		err = count;
	}
	lanefs_path_put(&path);
	if (err == -EEXIST) {
		lanefs_error(LANEFS_SB(inode->i_sb), "inode %llu: extents overlap", lanefs_number(inode));
		err = -EUCLEAN;
	}
	return err;
}

static int lanefs_map_change(struct lanefs_handle *h, struct inode *inode,
			     enum lanefs_change change, struct lanefs_map map)
{
	u64 end = map.logical + map.length;
	int err;

	for (; map.logical < end; map.logical += map.length, map.block += map.length) {
		map.length = end - map.logical;
		err = lanefs_leaf_change(h, inode, change, &map);
		if (err)
			return err;
	}
	return 0;
}

/**
 * lanefs_map_insert() - map a hole, or a part of one
 * @h: the handle
 * @inode: the file, to be journaled afterwards
 * @map: an extent over at most two leaves
 *
 * Context: Under li_tree_sem, for writing, in a handle that has reserved lanefs_tree_room() blocks.
 * Return: 0 or the error of the tree.
 */
int lanefs_map_insert(struct lanefs_handle *h, struct inode *inode, const struct lanefs_map *map)
{
	return lanefs_map_change(h, inode, LANEFS_INSERT, *map);
}

/**
 * lanefs_map_replace() - map blocks in place of a hole, or of one extent or a part of it
 * @h: the handle
 * @inode: the file, to be journaled afterwards
 * @map: an extent over at most two leaves
 *
 * It does not free what was mapped.
 *
 * Context: As lanefs_map_insert().
 * Return: 0 or the error of the tree.
 */
int lanefs_map_replace(struct lanefs_handle *h, struct inode *inode, const struct lanefs_map *map)
{
	return lanefs_map_change(h, inode, LANEFS_REPLACE, *map);
}

/**
 * lanefs_map_remove() - take blocks out of the map
 * @h: the handle
 * @inode: the file, to be journaled afterwards
 * @logical: the first one
 * @length: how many, of one extent
 *
 * It does not free them.
 *
 * Context: As lanefs_map_insert(); needs no reserved blocks but for a cut in the middle.
 * Return: 0 or the error of the tree.
 */
int lanefs_map_remove(struct lanefs_handle *h, struct inode *inode, u64 logical, u64 length)
{
	struct lanefs_map map = { .logical = logical, .length = length };

	return lanefs_map_change(h, inode, LANEFS_REMOVE, map);
}

/**
 * lanefs_map_split() - make two extents of one, so that one begins at a logical block
 * @h: the handle
 * @inode: the file, to be journaled afterwards
 * @logical: the block; nothing if none is mapped there, or an extent begins there
 *
 * Context: As lanefs_map_insert().
 * Return: 0 or the error of the tree.
 */
int lanefs_map_split(struct lanefs_handle *h, struct inode *inode, u64 logical)
{
	struct lanefs_map map = { .logical = logical, .length = 1 };

	return lanefs_leaf_change(h, inode, LANEFS_SPLIT, &map);
}

static u64 lanefs_key_down(u64 key, u64 at, u64 by)
{
	return key <= at ? key : max(key, at + by) - by;
}

static u64 lanefs_key_up(u64 key, u64 at, u64 by)
{
	return key <= at ? key : key + by;
}

/* The extents from `first` on of the leaf at the end of the path, all of which can be moved. */
static void lanefs_leaf_shift(struct lanefs_handle *h, struct inode *inode,
			      const struct lanefs_path *path, u64 first, s64 by)
{
	struct lanefs_records records;
	unsigned int count;

	if (path->p_level)
		lanefs_buf_join(h, path->p_buf[0]);
	records = lanefs_records_of(inode, path);
	count = lanefs_extents_shift(records.extents, records.count, first, by);
	lanefs_records_changed(inode, path, count);
}

/**
 * lanefs_map_shift_down() - move the extents of one leaf down, into the hole before them
 * @h: the handle
 * @inode: the file, to be journaled afterwards
 * @at: logical block of the hole; then the end of what has moved, where it is now
 * @by: its length in blocks
 *
 * The leaf is the next one that has extents behind the hole.
 *
 * Context: As lanefs_map_insert(); needs no reserved blocks.
 * Return: 1: there may be more; 0: there were none; or the error of a read.
 */
int lanefs_map_shift_down(struct lanefs_handle *h, struct inode *inode, u64 *at, u64 by)
{
	struct lanefs_records records;
	struct lanefs_path path;
	u64 end = 0, next;
	int err;

	err = lanefs_tree_find(inode, *at + by, &path);
	if (err)
		return err;
	records = lanefs_records_of(inode, &path);
	if (records.count)
		end = lanefs_extent_end(&records.extents[records.count - 1]);
	next = path.p_next;
	if (end <= *at + by && next != U64_MAX) {
		lanefs_path_put(&path);
		err = lanefs_tree_find(inode, next, &path);
		if (err)
			return err;
		records = lanefs_records_of(inode, &path);
		end = lanefs_extent_end(&records.extents[records.count - 1]);
	}
	if (end > *at + by) {
		lanefs_leaf_shift(h, inode, &path, *at + by, -(s64)by);
		lanefs_tree_rekey_leaf(h, inode, &path, lanefs_key_down, *at, by);
		*at = end - by;
		err = 1;
	}
	lanefs_path_put(&path);
	return err;
}

/**
 * lanefs_map_shift_up() - move the extents of one leaf up, into the hole behind them
 * @h: the handle
 * @inode: the file, to be journaled afterwards
 * @first: logical block; what begins before it stays
 * @at: logical block of the hole; then where the leaf began, or @first
 * @by: its length in blocks
 *
 * The leaf is the last one before the hole.
 *
 * Context: As lanefs_map_insert(); needs no reserved blocks.
 * Return: 1: there may be more; 0: there were none; or the error of a read.
 */
int lanefs_map_shift_up(struct lanefs_handle *h, struct inode *inode, u64 first, u64 *at, u64 by)
{
	struct lanefs_path path;
	int err;

	if (*at <= first)
		return 0;
	err = lanefs_tree_find(inode, *at - 1, &path);
	if (err)
		return err;
	lanefs_leaf_shift(h, inode, &path, first, by);
	lanefs_tree_rekey_leaf(h, inode, &path, lanefs_key_up, first, by);
	*at = max(path.p_first, first);
	lanefs_path_put(&path);
	return 1;
}

/**
 * lanefs_map_written() - make unwritten blocks written ones
 * @h: the handle
 * @inode: the file, to be journaled afterwards
 * @logical: the first one
 * @length: how many
 * @done: how many of them were converted: those in one leaf
 *
 * Context: As lanefs_map_insert(), but lanefs_tree_blocks_needed() reserved blocks are enough.
 * Return: 0, -ENOSPC: it needs blocks and none are reserved, or another error of the tree.
 */
int lanefs_map_written(struct lanefs_handle *h, struct inode *inode, u64 logical, u64 length,
		       u64 *done)
{
	struct lanefs_map map = { .logical = logical, .length = length };
	int err = lanefs_leaf_change(h, inode, LANEFS_CONVERT, &map);

	*done = map.length;
	return err;
}
