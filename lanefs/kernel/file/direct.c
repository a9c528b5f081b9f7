// SPDX-License-Identifier: GPL-2.0-only
/*
 * Direct I/O (O_DIRECT): from and to the device, where no page may be cached. To and from a log it goes
 * through the page cache.
 */
#include <linux/blkdev.h>
#include <linux/pagemap.h>
#include <linux/uio.h>

#include "file/file.h"

/* What is cached of the range and dirty is written to the device first. */
ssize_t lanefs_direct_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	bool wait = !(iocb->ki_flags & IOCB_NOWAIT);
	ssize_t count = 0;

	if (!iov_iter_count(to))
		return 0;
	file_accessed(iocb->ki_filp);
	if (wait)
		inode_lock_shared(inode);
	else if (!inode_trylock_shared(inode))
		return -EAGAIN;
	if (inode->i_mapping->nrpages)
		count = lanefs_writeout_range(inode, iocb->ki_pos,
					      iocb->ki_pos + iov_iter_count(to) - 1, wait);
	if (!count)
		count = iomap_dio_rw(iocb, to, &lanefs_iomap_ops, NULL, 0, NULL, 0);
	inode_unlock_shared(inode);
	return count;
}

/*
 * Whether a write up to there moves the size on disk: also one of blocks that are there and written,
 * where the file ends behind what was written back, as after an append that failed.
 */
static bool lanefs_moves_disk_size(const struct inode *inode, loff_t end)
{
	return end > READ_ONCE(LANEFS_I(inode)->li_disk_size);
}

/*
 * iomap may call this in an interrupt where it sees blocks that are written and a range within the file.
 * Nothing is to be journaled then: who moves the size on disk waits, with the inode locked.
 */
static int lanefs_direct_ended(struct kiocb *iocb, ssize_t size, int error, unsigned int flags)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	bool moves = lanefs_moves_disk_size(inode, iocb->ki_pos + size);

	if (error || !size)
		return error;
	if (!(flags & IOMAP_DIO_UNWRITTEN) && !moves)
		return 0;
	if (moves)
		lockdep_assert_held_write(&inode->i_rwsem);
	return lanefs_io_ended(inode, iocb->ki_pos, size, flags & IOMAP_DIO_UNWRITTEN, true);
}

static const struct iomap_dio_ops lanefs_direct_ops = {
	.end_io = lanefs_direct_ended,
};

/*
 * The inode is locked, so what moves its end, or fills holes, waits for the I/O. All holes have
 * blocks reserved for them before anything is written: -ENOSPC leaves the file as it was.
 */
static ssize_t lanefs_direct_write_most(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	size_t asked = iov_iter_count(from);
	bool grows = iocb->ki_pos + asked > i_size_read(inode);
	bool wait = grows || lanefs_moves_disk_size(inode, iocb->ki_pos + asked) ||
		    ((iocb->ki_pos | asked) & (LANEFS_BLOCK_SIZE - 1));
	u64 first = iocb->ki_pos >> LANEFS_BLOCK_SHIFT;
	u64 end = DIV_ROUND_UP_ULL(iocb->ki_pos + asked, LANEFS_BLOCK_SIZE);
	bool clean = grows && !lanefs_maps_past_end(inode);
	ssize_t count;
	int err;

	err = lanefs_delalloc_reserve_range(inode, first, end);
	if (err)
		return err;
	if (wait)
		inode_dio_wait(inode);
	count = iomap_dio_rw(iocb, from, &lanefs_iomap_ops, &lanefs_direct_ops,
			     wait ? IOMAP_DIO_FORCE_WAIT : 0, NULL, 0);
	lanefs_delalloc_undo(inode, first, end);
	/* The end is not where it should be, and blocks that were allocated lie behind it. */
	if (clean && count != asked)
		lanefs_free_on_close(inode);
	/* The page cache could not be emptied: write through it. */
	return count == -ENOTBLK ? 0 : count;
}

/* Whether the range has no hole; as the inode is not unlocked, none is made either. */
static bool lanefs_range_mapped(struct inode *inode, loff_t start, loff_t end)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	u64 at = start >> LANEFS_BLOCK_SHIFT, last = end >> LANEFS_BLOCK_SHIFT;
	struct lanefs_map map = { .block = 1 };
	int err = 0;

	for (; at < last && !err && map.block; at += map.length) {
		down_read(&li->li_tree_sem);
		err = lanefs_map_find(inode, at, &map);
		up_read(&li->li_tree_sem);
		err = err ?: lanefs_walk_pause();
	}
	return !err && map.block;
}

/* With the inode locked, if only shared: the bytes that may be written, or an error. */
ssize_t lanefs_write_checks(struct kiocb *iocb, struct iov_iter *from)
{
	lockdep_assert_held(&file_inode(iocb->ki_filp)->i_rwsem);
	return IS_IMMUTABLE(file_inode(iocb->ki_filp)) ? -EPERM : generic_write_checks(iocb, from);
}

/*
 * With the inode's lock shared. If it must not wait, lanefs_iomap_begin() sees to it that there are
 * blocks.
 */
static ssize_t lanefs_direct_overwrite_locked(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	bool wait = !(iocb->ki_flags & IOCB_NOWAIT);
	ssize_t count;
	loff_t end;
	int err;

	count = lanefs_write_checks(iocb, from);
	if (count <= 0)
		return count;
	end = iocb->ki_pos + count;
	if (!IS_NOSEC(inode) || ((iocb->ki_pos | end) & (LANEFS_BLOCK_SIZE - 1)) ||
	    end > i_size_read(inode) || lanefs_moves_disk_size(inode, end) ||
	    (wait && !lanefs_range_mapped(inode, iocb->ki_pos, end)))
		return 0;
	err = kiocb_modified(iocb);
	if (err)
		return err;
	count = iomap_dio_rw(iocb, from, &lanefs_iomap_ops, &lanefs_direct_ops, 0, NULL, 0);
	return count == -ENOTBLK ? 0 : count;
}

/*
 * A direct write of whole blocks that are there moves neither the end nor the map, so others may write
 * at the same time. Returns the bytes written; 0: none, take the inode's lock; or an error.
 */
ssize_t lanefs_direct_overwrite(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t count;

	if (lanefs_is_log(inode->i_sb) || (iocb->ki_flags & IOCB_APPEND))
		return 0;
	if (!(iocb->ki_flags & IOCB_NOWAIT))
		inode_lock_shared(inode);
	else if (!inode_trylock_shared(inode))
		return -EAGAIN;
	count = lanefs_direct_overwrite_locked(iocb, from);
	inode_unlock_shared(inode);
	return count;
}

/*
 * Writes the rest of a direct write through the page cache, and then to the device. That it is not
 * direct any more makes lanefs_write_iter() sync it.
 */
static ssize_t lanefs_write_rest(struct kiocb *iocb, struct iov_iter *from, ssize_t before)
{
	struct address_space *mapping = iocb->ki_filp->f_mapping;
	loff_t start = iocb->ki_pos;
	ssize_t count;
	int err;

	iocb->ki_flags &= ~IOCB_DIRECT;
	count = lanefs_buffered_write(iocb, from, &lanefs_iomap_ops, &lanefs_iomap_checks);
	if (count <= 0)
		return before ?: count;
	err = filemap_write_and_wait_range(mapping, start, start + count - 1);
	if (err)
		return before ?: err;
	invalidate_mapping_pages(mapping, start >> PAGE_SHIFT, (start + count - 1) >> PAGE_SHIFT);
	return before + count;
}

/* All through the page cache, where pages keep what is read apart from what is moved. */
static ssize_t lanefs_direct_to_log(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	u64 first = iocb->ki_pos >> LANEFS_BLOCK_SHIFT;
	u64 end = DIV_ROUND_UP_ULL(iocb->ki_pos + iov_iter_count(from), LANEFS_BLOCK_SIZE);
	ssize_t count;

	if (iocb->ki_flags & IOCB_NOWAIT)
		return -EAGAIN;
	count = lanefs_delalloc_reserve_range(inode, first, end);
	if (count)
		return count;
	count = lanefs_write_rest(iocb, from, 0);
	lanefs_delalloc_undo(inode, first, end);
	return count;
}

/*
 * Whether it is direct, and moves the file's end inside a block. The page of that block may be
 * cached, and who reads it while the end moves would find zeros up to the new end.
 */
static bool lanefs_extends_block(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	struct block_device *bdev = inode->i_sb->s_bdev;
	loff_t size = i_size_read(inode), pos = iocb->ki_pos;
	size_t count = iov_iter_count(from);

	return (size & (LANEFS_BLOCK_SIZE - 1)) && pos < round_up(size, LANEFS_BLOCK_SIZE) &&
	       pos + count > size && !((pos | count) & (bdev_logical_block_size(bdev) - 1)) &&
	       !(iov_iter_alignment(from) & bdev_dma_alignment(bdev));
}

/* With the inode locked. */
ssize_t lanefs_direct_write(struct kiocb *iocb, struct iov_iter *from)
{
	ssize_t count;

	if (lanefs_is_log(file_inode(iocb->ki_filp)->i_sb))
		return lanefs_direct_to_log(iocb, from);
	if (iocb->ki_flags & IOCB_NOWAIT)
		return -EAGAIN;
	if (lanefs_extends_block(iocb, from))
		return lanefs_write_rest(iocb, from, 0);
	count = lanefs_direct_write_most(iocb, from);
	if (count >= 0 && iov_iter_count(from))
		count = lanefs_write_rest(iocb, from, count);
	return count;
}
