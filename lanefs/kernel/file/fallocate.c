// SPDX-License-Identifier: GPL-2.0-only
/*
 * fallocate: blocks allocated ahead (unwritten extents), holes punched, ranges zeroed, taken out or
 * put in (shift.c). The inode is locked, which keeps buffered writes, truncation and new direct I/O
 * away; inode_dio_wait() waits for direct I/O that is under way; the mapping's invalidate lock keeps
 * page faults away.
 */
#include <linux/fs.h>
#include <linux/falloc.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/writeback.h>

#include "file/file.h"

/* The holes among the logical blocks from `at` to before `end`, in blocks. */
static int lanefs_count_holes(struct inode *inode, u64 at, u64 end, u64 *holes)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_map map;
	int err = 0;

	*holes = 0;
	for (; at < end && !err; at += map.length) {
		down_read(&li->li_tree_sem);
		err = lanefs_map_find(inode, at, &map);
		if (!err)
			lanefs_delalloc_clip(inode, &map, end);
		up_read(&li->li_tree_sem);
		if (!err && !map.block && !map.delayed)
			*holes += min(map.length, end - at);
		err = err ?: lanefs_walk_pause();
	}
	return err;
}

/*
 * Fills the holes from logical block `at` to before `end` with unwritten extents. -ENOSPC: as a
 * rule nothing was allocated; some was if others took the space meanwhile.
 */
static int lanefs_fill_range(struct inode *inode, u64 at, u64 end)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_map map;
	u64 holes;
	u32 seq;
	int err;

	err = lanefs_count_holes(inode, at, end, &holes);
	if (err)
		return err;
	if (!lanefs_data_fits(LANEFS_SB(inode->i_sb), holes)) {
		/* Others may have written it since. */
		(void)lanefs_flush_delayed(inode->i_sb, true);
		if (!lanefs_data_fits(LANEFS_SB(inode->i_sb), holes))
			return -ENOSPC;
	}
	for (; at < end && !err; at += map.length) {
		down_read(&li->li_tree_sem);
		err = lanefs_map_find(inode, at, &map);
		up_read(&li->li_tree_sem);
		if (!err && !map.block)
			err = lanefs_data_alloc(inode, min(map.length, end - at), false, &map,
						&seq);
		err = err ?: lanefs_walk_pause();
	}
	return err;
}

/* Makes bytes of one block zeros. What is unwritten yet but dirty would be taken for zeros. */
static int lanefs_zero_part(struct inode *inode, loff_t start, loff_t end)
{
	int err;

	end = min(end, i_size_read(inode));
	if (start >= end)
		return 0;
	err = filemap_write_and_wait_range(inode->i_mapping, start, end - 1);
	if (err)
		return err;
	return lanefs_iomap_zero(inode, start, end - start, &lanefs_iomap_ops,
				 &lanefs_iomap_checks);
}

static int lanefs_punch_hole(struct inode *inode, loff_t start, loff_t end)
{
	loff_t first = round_up(start, LANEFS_BLOCK_SIZE), last = round_down(end, LANEFS_BLOCK_SIZE);
	struct lanefs_inode *li = LANEFS_I(inode);
	int err, retries = 0;

	if (first > last)
		return lanefs_zero_part(inode, start, end);
	err = lanefs_zero_part(inode, start, first);
	if (!err)
		err = lanefs_zero_part(inode, last, end);
	if (err || first == last)
		return err;
	/* If the last page goes unwritten its I/O end cannot move the size on disk. */
	if (last >= i_size_read(inode) && i_size_read(inode) > li->li_disk_size) {
		err = lanefs_write_below(inode, first) ?: lanefs_size_journal(inode, i_size_read(inode));
		if (err)
			return err;
	}
	truncate_pagecache_range(inode, first, last - 1);
	lanefs_delalloc_drop(inode, first >> LANEFS_BLOCK_SHIFT, last >> LANEFS_BLOCK_SHIFT);
	do {
		err = lanefs_free_range(inode, first >> LANEFS_BLOCK_SHIFT,
					last >> LANEFS_BLOCK_SHIFT);
	} while (err == -ENOSPC && lanefs_retry_alloc(LANEFS_SB(inode->i_sb), true, &retries));
	return err;
}

/*
 * Writeback, which goes on, preallocates nothing: close() could not tell it from the blocks that are
 * allocated now. True: there is preallocation already.
 */
static bool lanefs_fallocate_begin(struct inode *inode)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	bool preallocated;

	down_write(&li->li_tree_sem);
	li->li_fallocating = true;
	preallocated = li->li_preallocated;
	up_write(&li->li_tree_sem);
	return preallocated;
}

static void lanefs_fallocate_end(struct inode *inode)
{
	struct lanefs_inode *li = LANEFS_I(inode);

	down_write(&li->li_tree_sem);
	li->li_fallocating = false;
	up_write(&li->li_tree_sem);
}

static int lanefs_fallocate_range(struct inode *inode, int mode, loff_t start, loff_t end)
{
	int err;

	if (mode & FALLOC_FL_COLLAPSE_RANGE)
		return lanefs_collapse_range(inode, start, end);
	if (mode & FALLOC_FL_INSERT_RANGE)
		return lanefs_insert_range(inode, start, end);
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) {
		err = lanefs_punch_hole(inode, start, end);
		if (err || (mode & FALLOC_FL_PUNCH_HOLE))
			return err;
	}
	err = lanefs_fill_range(inode, start >> LANEFS_BLOCK_SHIFT,
				DIV_ROUND_UP_ULL(end, LANEFS_BLOCK_SIZE));
	if (err || (mode & FALLOC_FL_KEEP_SIZE) || end <= i_size_read(inode))
		return err;
	truncate_setsize(inode, end);
	return lanefs_size_journal(inode, end);
}

/* With the inode and its mapping locked, and no direct I/O under way. */
static int lanefs_fallocate_locked(struct inode *inode, int mode, loff_t start, loff_t end)
{
	int err = 0;

	if (lanefs_fallocate_begin(inode))
		err = lanefs_free_past_end(inode);
	if (!err)
		err = lanefs_fallocate_range(inode, mode, start, end);
	lanefs_fallocate_end(inode);
	return err;
}

#define LANEFS_SHIFTS	(FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)

/* Whether the range can be taken out of the file, or put into it: whole blocks before its end. */
static int lanefs_may_shift(struct inode *inode, int mode, loff_t start, loff_t end)
{
	loff_t size = i_size_read(inode);

	if ((start | end) & (LANEFS_BLOCK_SIZE - 1))
		return -EINVAL;
	if (mode & FALLOC_FL_COLLAPSE_RANGE)
		return end < size ? 0 : -EINVAL;
	if (end - start > inode->i_sb->s_maxbytes - size)
		return -EFBIG;
	return start < size ? inode_newsize_ok(inode, size + end - start) : -EINVAL;
}

long lanefs_fallocate(struct file *file, int mode, loff_t offset, loff_t length)
{
	struct inode *inode = file_inode(file);
	loff_t end = offset + length;
	int err = 0;

	if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE | LANEFS_SHIFTS))
		return -EOPNOTSUPP;
	if (READ_ONCE(LANEFS_SB(inode->i_sb)->s_aborted))
		return -EROFS;
	inode_lock(inode);
	if (IS_IMMUTABLE(inode))
		err = -EPERM;
	/* It may have become one since the VFS has looked. */
	else if (IS_SWAPFILE(inode))
		err = -ETXTBSY;
	else if (mode & LANEFS_SHIFTS)
		err = lanefs_may_shift(inode, mode, offset, end);
	else if (!(mode & FALLOC_FL_KEEP_SIZE) && end > i_size_read(inode))
		err = inode_newsize_ok(inode, end) ?: lanefs_write_below(inode, end) ?:
		      lanefs_zero_tail(inode, i_size_read(inode));
	if (!err)
		err = file_modified(file);
	if (!err) {
		inode_dio_wait(inode);
		filemap_invalidate_lock(inode->i_mapping);
		err = lanefs_fallocate_locked(inode, mode, offset, end);
		filemap_invalidate_unlock(inode->i_mapping);
	}
	inode_unlock(inode);
	if (!err && ((file->f_flags & O_DSYNC) || IS_SYNC(inode)))
		err = vfs_fsync_range(file, offset, end - 1, !(file->f_flags & __O_SYNC));
	return err;
}
