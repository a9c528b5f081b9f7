// SPDX-License-Identifier: GPL-2.0-only
/*
 * fallocate that takes a range out of a file (collapse) or puts one into it (insert): all extents
 * behind it are shifted. The data stays where it is.
 *
 * A hole of li_shift_by blocks at li_shift_at moves through the map, a leaf at a time: up through the
 * extents that a collapse moves down, or down through those that an insertion moves up. The inode says
 * so on disk, as an orphan, from the first handle to the last. Whoever finds it after a crash moves the
 * hole up out of the file (format.h), so that the file is the new one of a collapse, or the old one of
 * an insertion, and never in between. Only the first handle may need blocks, for the tree.
 *
 * The inode and the mapping's invalidate lock are held, nothing is dirty, and no page is cached from the
 * range on, so that nobody else sees or changes the map there. Collectors leave the file alone.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched.h>

#include "file/file.h"

#define LANEFS_OWN_AT_ONCE	(8 * LANEFS_OWNERS)	/* blocks whose owners a handle changes */

/* Two records more in the map, and the inode with its mark. */
#define LANEFS_CREDITS_SHIFT	(LANEFS_CREDITS + LANEFS_CREDITS_INODE)

/*
 * As lanefs_map_find(), but without the hole of a shift that a crash has interrupted, where nobody has
 * ended it: on a read-only mount.
 */
int lanefs_map_find_shifted(struct inode *inode, u64 logical, struct lanefs_map *map)
{
	const struct lanefs_inode *li = LANEFS_I(inode);
	u64 at = li->li_shift_at, by = li->li_shift_by;
	int err;

	if (!by)
		return lanefs_map_find(inode, logical, map);
	if (logical + by >= LANEFS_MAX_FILE_BLOCKS) {
		*map = (struct lanefs_map){ .logical = logical,
					    .length = LANEFS_MAX_FILE_BLOCKS - logical };
		return 0;
	}
	err = lanefs_map_find(inode, logical < at ? logical : logical + by, map);
	if (err)
		return err;
	if (logical < at)
		map->length = min(map->length, at - logical);
	map->logical = logical;
	return 0;
}

/* Has the file's data written, and drops what is cached from logical block `first` on. */
static int lanefs_shift_prepare(struct inode *inode, u64 first)
{
	int err = filemap_write_and_wait(inode->i_mapping);

	if (err)
		return err;
	truncate_pagecache(inode, (loff_t)first << LANEFS_BLOCK_SHIFT);
	lanefs_delalloc_drop(inode, first, LANEFS_MAX_FILE_BLOCKS);
	return 0;
}

/*
 * With the tree locked: extents begin at `first` and at `second`, and the hole lies at `at`. The size on
 * disk is the larger one: `size`.
 */
static int lanefs_shift_begin_in(struct lanefs_handle *h, struct inode *inode, u64 first, u64 second,
				 u64 at, u64 by, loff_t size)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	int err;

	lockdep_assert_held_write(&li->li_tree_sem);
	/* If there is no block left the change may still need none. */
	(void)lanefs_reserve(h, lanefs_domain_of(inode), 2 * lanefs_tree_blocks_needed(inode) + 2,
			     LANEFS_FOR_COMPLETION);
	err = lanefs_map_split(h, inode, first);
	if (!err)
		err = lanefs_map_split(h, inode, second);
	if (!err) {
		li->li_shift_at = at;
		li->li_shift_by = by;
		li->li_disk_size = size;
		lanefs_orphan(h, inode, true);
	}
	lanefs_inode_journal(h, inode, true);
	return err;
}

static int lanefs_shift_begin(struct inode *inode, u64 first, u64 second, u64 at, u64 by, loff_t size)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_handle h;
	int err, retries = 0;

	do {
		err = lanefs_handle_start(&h, LANEFS_SB(inode->i_sb), LANEFS_CREDITS_SHIFT,
					  &li->li_domain, 1);
		if (err)
			return err;
		down_write(&li->li_tree_sem);
		err = lanefs_shift_begin_in(&h, inode, first, second, at, by, size);
		up_write(&li->li_tree_sem);
		if (err && err != -ENOSPC)
			lanefs_abort(h.h_sbi);
		lanefs_handle_stop(&h);
	} while (err == -ENOSPC && lanefs_retry_alloc(LANEFS_SB(inode->i_sb), true, &retries));
	return err;
}

/* Whether the handle can journal one leaf more, with the nodes above it and the inode. */
static bool lanefs_shift_more(const struct lanefs_handle *h)
{
	return h->h_part[0].used + LANEFS_MAX_LEVEL + 3 <= h->h_part[0].credits;
}

/* Moves the hole: up to the end of the map, or (`up` extents) down to `first`. */
static int lanefs_shift_extents(struct inode *inode, u64 first, bool up)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_handle h;
	int err, more = 1;
	u64 at;

	while (more > 0) {
		err = lanefs_handle_start(&h, LANEFS_SB(inode->i_sb), LANEFS_CREDITS, &li->li_domain, 1);
		if (err)
			return err;
		down_write(&li->li_tree_sem);
		at = li->li_shift_at;
		do {
			more = up ? lanefs_map_shift_up(&h, inode, first, &at, li->li_shift_by) :
				    lanefs_map_shift_down(&h, inode, &at, li->li_shift_by);
		} while (more > 0 && lanefs_shift_more(&h));
		li->li_shift_at = at;
		lanefs_inode_journal(&h, inode, true);
		up_write(&li->li_tree_sem);
		if (more < 0)
			lanefs_abort(h.h_sbi);
		lanefs_handle_stop(&h);
		cond_resched();
	}
	return more;
}

/* In a log: the blocks from logical block `at` on have the owners that the map says. */
static int lanefs_shift_owners(struct inode *inode, u64 at)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_domain *domain;
	struct lanefs_handle h;
	struct lanefs_map map;
	int err;

	for (; at < LANEFS_MAX_FILE_BLOCKS; at += map.length) {
		down_read(&li->li_tree_sem);
		err = lanefs_map_find(inode, at, &map);
		up_read(&li->li_tree_sem);
		if (err)
			return err;
		if (!map.block)
			continue;
		map.length = min_t(u64, map.length, LANEFS_OWN_AT_ONCE);
		domain = lanefs_block_domain(LANEFS_SB(inode->i_sb), map.block);
		err = lanefs_handle_start(&h, domain->d_sbi, LANEFS_CREDITS_INODE, &domain->d_id, 1);
		if (err)
			return err;
		err = lanefs_owners_set(&h, domain, map.block, map.length, inode->i_ino, at);
		if (err)
			lanefs_abort(domain->d_sbi);
		lanefs_handle_stop(&h);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

/* The last handle: the file is `size` long. */
static int lanefs_shift_end(struct inode *inode, loff_t size)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_handle h;
	int err;

	err = lanefs_handle_start_inode(&h, inode);
	if (err)
		return err;
	down_write(&li->li_tree_sem);
	li->li_shift_at = 0;
	li->li_shift_by = 0;
	li->li_disk_size = size;
	i_size_write(inode, size);
	lanefs_orphan(&h, inode, !inode->i_nlink);
	lanefs_inode_journal(&h, inode, true);
	up_write(&li->li_tree_sem);
	lanefs_handle_stop(&h);
	return 0;
}

/* Takes the hole out: ends a collapse, or undoes an insertion. Owners are right before `owned`. */
static int lanefs_shift_out(struct inode *inode, u64 owned)
{
	const struct lanefs_inode *li = LANEFS_I(inode);
	loff_t size = li->li_disk_size - ((loff_t)li->li_shift_by << LANEFS_BLOCK_SHIFT);
	int err;

	err = lanefs_free_extents(inode, li->li_shift_at, (u64)li->li_shift_at + li->li_shift_by);
	if (!err)
		err = lanefs_shift_extents(inode, 0, false);
	if (!err && lanefs_is_log(inode->i_sb))
		err = lanefs_shift_owners(inode, owned);
	return err ?: lanefs_shift_end(inode, size);
}

/* After a crash in the middle of a shift. */
int lanefs_shift_recover(struct inode *inode)
{
	return lanefs_shift_out(inode, 0);
}

/* A write that follows may be in place, and must not be found in the file as it was before. */
static int lanefs_shift_make_durable(struct inode *inode)
{
	return lanefs_make_durable(lanefs_journal_of(inode), READ_ONCE(LANEFS_I(inode)->li_seq));
}

int lanefs_collapse_range(struct inode *inode, loff_t start, loff_t end)
{
	u64 first = start >> LANEFS_BLOCK_SHIFT, behind = end >> LANEFS_BLOCK_SHIFT;
	int err;

	err = lanefs_shift_prepare(inode, first);
	if (!err)
		err = lanefs_shift_begin(inode, first, behind, first, behind - first,
					 i_size_read(inode));
	if (!err)
		err = lanefs_shift_out(inode, first);
	return err ?: lanefs_shift_make_durable(inode);
}

int lanefs_insert_range(struct inode *inode, loff_t start, loff_t end)
{
	u64 first = start >> LANEFS_BLOCK_SHIFT, by = (end - start) >> LANEFS_BLOCK_SHIFT;
	loff_t size = i_size_read(inode) + (end - start);
	struct lanefs_map last;
	int err;

	err = lanefs_shift_prepare(inode, first);
	if (err)
		return err;
	down_read(&LANEFS_I(inode)->li_tree_sem);
	err = lanefs_map_last(inode, &last);
	up_read(&LANEFS_I(inode)->li_tree_sem);
	/* What was preallocated past the end would not be in reach. */
	if (!err && last.logical + last.length + by > LANEFS_MAX_FILE_BLOCKS)
		err = -EFBIG;
	if (!err)
		err = lanefs_shift_begin(inode, first, first, LANEFS_MAX_FILE_BLOCKS - by, by, size);
	if (!err)
		err = lanefs_shift_extents(inode, first, true);
	if (!err && lanefs_is_log(inode->i_sb))
		err = lanefs_shift_owners(inode, first);
	if (!err)
		err = lanefs_shift_end(inode, size);
	return err ?: lanefs_shift_make_durable(inode);
}
