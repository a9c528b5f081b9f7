// SPDX-License-Identifier: GPL-2.0-only
/* Operations on regular files, and fsync of any inode. */
#include <linux/blkdev.h>
#include <linux/falloc.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/uio.h>
#include <linux/writeback.h>

#include "file/file.h"

/*
 * Makes the bytes from `size` on, which is not beyond the end of the file, to the end of the block
 * zeros in the page cache. iomap_zero_range() before 6.10 would move the end to there.
 */
static int lanefs_zero_cached(struct inode *inode, loff_t size)
{
	struct folio *folio = read_mapping_folio(inode->i_mapping, size >> PAGE_SHIFT, NULL);
	struct lanefs_map map = { .logical = size >> LANEFS_BLOCK_SHIFT };
	u32 seq;
	int err;

	if (IS_ERR(folio))
		return PTR_ERR(folio);
	err = lanefs_is_log(inode->i_sb) ? lanefs_delalloc_reserve(inode, 1, false, &map, &seq) : 0;
	if (err) {
		folio_put(folio);
		return err;
	}
	folio_lock(folio);
	folio_zero_segment(folio, offset_in_folio(folio, size), folio_size(folio));
	folio_mark_dirty(folio);
	folio_unlock(folio);
	folio_put(folio);
	return 0;
}

/*
 * Makes the bytes from the end of the file to the end of its last block zeros, on the device as
 * well: before the file grows, so that nothing old shows there, even after a crash.
 */
int lanefs_zero_tail(struct inode *inode, loff_t size)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	loff_t first = round_down(size, LANEFS_BLOCK_SIZE), end = round_up(size, LANEFS_BLOCK_SIZE);
	struct lanefs_map map;
	int err;

	if (size == end)
		return 0;
	/* A dirty page over an unwritten block would be taken for zeros. */
	err = filemap_write_and_wait_range(inode->i_mapping, first, end - 1);
	if (err)
		return err;
	down_read(&li->li_tree_sem);
	err = lanefs_map_find(inode, first >> LANEFS_BLOCK_SHIFT, &map);
	up_read(&li->li_tree_sem);
	if (err || !map.block || map.unwritten)
		return err;
	err = lanefs_zero_cached(inode, size);
	if (err)
		return err;
	return filemap_write_and_wait_range(inode->i_mapping, first, end - 1);
}

/* Completes a read that the page cache served in part. */
static ssize_t lanefs_read_rest(struct kiocb *iocb, struct iov_iter *to, ssize_t before)
{
	ssize_t count = generic_file_read_iter(iocb, to);

	return count > 0 || !before ? before + count : before;
}

static ssize_t lanefs_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	bool wait = !(iocb->ki_flags & IOCB_NOWAIT);
	ssize_t count = 0;

	if (lanefs_is_shutdown(inode->i_sb))
		return -EIO;
	/* A block of a log may be another's before a read of it is over; the page's lock prevents that. */
	if ((iocb->ki_flags & IOCB_DIRECT) && lanefs_is_log(inode->i_sb))
		iocb->ki_flags &= ~IOCB_DIRECT;
	if (!(iocb->ki_flags & IOCB_DIRECT)) {
		count = lanefs_read_shared(iocb, to);
		return count && !iov_iter_count(to) ? count : lanefs_read_rest(iocb, to, count);
	}
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

/* It does not come by lanefs_read_iter() on all kernels. */
static ssize_t lanefs_splice_read(struct file *file, loff_t *pos, struct pipe_inode_info *pipe,
				  size_t count, unsigned int flags)
{
	if (lanefs_is_shutdown(file_inode(file)->i_sb))
		return -EIO;
	return lanefs_generic_splice_read(file, pos, pipe, count, flags);
}

static int lanefs_direct_ended(struct kiocb *iocb, ssize_t size, int error, unsigned int flags)
{
	struct inode *inode = file_inode(iocb->ki_filp);

	if (error || !size)
		return error;
	if (!(flags & IOMAP_DIO_UNWRITTEN) &&
	    iocb->ki_pos + size <= READ_ONCE(LANEFS_I(inode)->li_disk_size))
		return 0;
	return lanefs_io_ended(inode, iocb->ki_pos, size, flags & IOMAP_DIO_UNWRITTEN, true);
}

static const struct iomap_dio_ops lanefs_direct_ops = {
	.end_io = lanefs_direct_ended,
};

/* Whether blocks beyond the end of the file are allocated, as far as can be known. */
static bool lanefs_maps_past_end(struct inode *inode)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_map last;
	int err;

	down_read(&li->li_tree_sem);
	err = lanefs_map_last(inode, &last);
	up_read(&li->li_tree_sem);
	return err || last.logical + last.length >
		      DIV_ROUND_UP_ULL(i_size_read(inode), LANEFS_BLOCK_SIZE);
}

/*
 * The inode is locked, so what moves its end, or fills holes, waits for the I/O. All holes have
 * blocks reserved for them before anything is written: -ENOSPC leaves the file as it was.
 */
static ssize_t lanefs_direct_write(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	bool wait = iocb->ki_pos + iov_iter_count(from) > i_size_read(inode) ||
		    ((iocb->ki_pos | iov_iter_count(from)) & (LANEFS_BLOCK_SIZE - 1));
	u64 first = iocb->ki_pos >> LANEFS_BLOCK_SHIFT;
	u64 end = DIV_ROUND_UP_ULL(iocb->ki_pos + iov_iter_count(from), LANEFS_BLOCK_SIZE);
	size_t asked = iov_iter_count(from);
	bool clean = iocb->ki_pos + asked > i_size_read(inode) && !lanefs_maps_past_end(inode);
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

	down_read(&li->li_tree_sem);
	for (; at < last && !err && map.block; at += map.length)
		err = lanefs_map_find(inode, at, &map);
	up_read(&li->li_tree_sem);
	return !err && map.block;
}

/* With the inode locked, if only shared: the bytes that may be written, or an error. */
static ssize_t lanefs_write_checks(struct kiocb *iocb, struct iov_iter *from)
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
	    end > i_size_read(inode) || (wait && !lanefs_range_mapped(inode, iocb->ki_pos, end)))
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
static ssize_t lanefs_direct_overwrite(struct kiocb *iocb, struct iov_iter *from)
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

static ssize_t lanefs_write_locked(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t count;
	int err;

	count = lanefs_write_checks(iocb, from);
	if (count <= 0)
		return count;
	err = kiocb_modified(iocb);
	if (!err && iocb->ki_pos > i_size_read(inode))
		err = iocb->ki_flags & IOCB_NOWAIT ? -EAGAIN :
						     lanefs_zero_tail(inode, i_size_read(inode));
	if (err)
		return err;
	if (!(iocb->ki_flags & IOCB_DIRECT))
		return lanefs_buffered_write(iocb, from, &lanefs_iomap_ops, &lanefs_iomap_checks);
	if (lanefs_is_log(inode->i_sb))
		return lanefs_direct_to_log(iocb, from);
	if (iocb->ki_flags & IOCB_NOWAIT)
		return -EAGAIN;
	if (lanefs_extends_block(iocb, from))
		return lanefs_write_rest(iocb, from, 0);
	count = lanefs_direct_write(iocb, from);
	if (count >= 0 && iov_iter_count(from))
		count = lanefs_write_rest(iocb, from, count);
	return count;
}

static ssize_t lanefs_write_some(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t count, rest = -EAGAIN;
	bool locked = true;

	count = iocb->ki_flags & IOCB_DIRECT ? lanefs_direct_overwrite(iocb, from) :
					       lanefs_overwrite(iocb, from);
	if (count >= 0 && iov_iter_count(from)) {
		if (!(iocb->ki_flags & IOCB_NOWAIT))
			inode_lock(inode);
		else
			locked = inode_trylock(inode);
		if (locked) {
			rest = lanefs_write_locked(iocb, from);
			inode_unlock(inode);
		}
		if (rest > 0 || !count)
			count += rest;
	}
	return count;
}

/*
 * Before a write to a log. ablate=svp: 1, and no collector works on the file until li_collect_sem
 * is given back.
 */
static int lanefs_log_write_begin(struct inode *inode, bool wait)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	int err = wait ? lanefs_throttle(inode) : 0;

	if (err || !lanefs_ablated(LANEFS_SB(inode->i_sb), LANEFS_ABLATE_SVP))
		return err;
	if (wait)
		down_read(&li->li_collect_sem);
	else if (!down_read_trylock(&li->li_collect_sem))
		return -EAGAIN;
	return 1;
}

static ssize_t lanefs_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	int entered = 0;
	ssize_t count;

	if (READ_ONCE(LANEFS_SB(inode->i_sb)->s_aborted))
		return -EROFS;
	if (lanefs_is_log(inode->i_sb))
		entered = lanefs_log_write_begin(inode, !(iocb->ki_flags & IOCB_NOWAIT));
	if (entered < 0)
		return entered;
	count = lanefs_write_some(iocb, from);
	if (entered)
		up_read(&LANEFS_I(inode)->li_collect_sem);
	/* iomap has synced direct I/O, where it wrote with FUA without a flush. */
	if (count > 0 && !(iocb->ki_flags & IOCB_DIRECT))
		count = generic_write_sync(iocb, count);
	return count;
}

static vm_fault_t lanefs_page_mkwrite(struct vm_fault *vmf)
{
	struct inode *inode = file_inode(vmf->vma->vm_file);
	vm_fault_t result;
	int flushed = 0;

	if (IS_IMMUTABLE(inode) || READ_ONCE(LANEFS_SB(inode->i_sb)->s_aborted))
		return VM_FAULT_SIGBUS;
	/* A task that is to die meanwhile does so afterwards. */
	if (lanefs_is_log(inode->i_sb))
		(void)lanefs_throttle(inode);
	sb_start_pagefault(inode->i_sb);
	file_update_time(vmf->vma->vm_file);
	do {
		filemap_invalidate_lock_shared(inode->i_mapping);
		/* It may have become so meanwhile: then what is dirty is being written. */
		result = VM_FAULT_SIGBUS;
		if (!IS_IMMUTABLE(inode))
			result = lanefs_iomap_mkwrite(vmf, &lanefs_iomap_ops);
		filemap_invalidate_unlock_shared(inode->i_mapping);
		/* There may be no space, but some to be had, now that the page is not locked. */
		if (result != VM_FAULT_SIGBUS || flushed)
			break;
		flushed = lanefs_flush_delayed(inode->i_sb);
	} while (flushed > 0);
	sb_end_pagefault(inode->i_sb);
	if (result != VM_FAULT_SIGBUS || flushed != -EAGAIN)
		return result;
	/* A freeze waits for this fault, and the store that is tried again for the thaw. */
	schedule_timeout_uninterruptible(1);
	return VM_FAULT_NOPAGE;
}

static const struct vm_operations_struct lanefs_vm_ops = {
	.fault = filemap_fault,
	.map_pages = filemap_map_pages,
	.page_mkwrite = lanefs_page_mkwrite,
};

static int lanefs_mmap(struct file *file, struct vm_area_struct *vma)
{
	file_accessed(file);
	vma->vm_ops = &lanefs_vm_ops;
	return 0;
}

/*
 * Writes the inode's data, then commits the last transaction that changed the inode with all that
 * this one needs (format.h): the inode, and the names that it got or lost in the same operations.
 */
int lanefs_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct inode *inode = file->f_mapping->host;
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_domain *domain = lanefs_domain_of(inode);
	bool flushes;
	u64 seq;
	int err;

	/* It writes nothing new, but has it written back. */
	if (READ_ONCE(LANEFS_SB(inode->i_sb)->s_options.strict) == LANEFS_STRICT_ON) {
		err = lanefs_throttle(inode);
		if (err)
			return err;
	}
	lanefs_writeout(inode, start, end);
	err = file_write_and_wait_range(file, start, end);
	/* Another fsync may be writing a page that was dirty before. */
	lanefs_writeout_wait(inode, start, end);
	err = file_check_and_advance_wb_err(file) ?: err;
	if (err)
		return err;
	seq = datasync ? READ_ONCE(li->li_data_seq) : READ_ONCE(li->li_seq);
	/* A commit that begins from now on flushes the device's cache after the data. */
	smp_mb();
	flushes = seq && READ_ONCE(domain->d_journal->j_running_seq) == seq;
	err = lanefs_make_durable(domain->d_journal, seq);
	if (!err && !flushes && S_ISREG(inode->i_mode))
		err = blkdev_issue_flush(inode->i_sb->s_bdev);
	return err;
}

static loff_t lanefs_llseek(struct file *file, loff_t offset, int whence)
{
	struct inode *inode = file->f_mapping->host;

	switch (whence) {
	case SEEK_HOLE:
	case SEEK_DATA:
		inode_lock_shared(inode);
		if (whence == SEEK_HOLE)
			offset = iomap_seek_hole(inode, offset, &lanefs_seek_ops);
		else
			offset = iomap_seek_data(inode, offset, &lanefs_seek_ops);
		inode_unlock_shared(inode);
		if (offset < 0)
			return offset;
		return vfs_setpos(file, offset, inode->i_sb->s_maxbytes);
	default:
		return generic_file_llseek(file, offset, whence);
	}
}

static int lanefs_file_open(struct inode *inode, struct file *file)
{
	int err = generic_file_open(inode, file);

	if (err)
		return err;
	file->f_mode |= LANEFS_MODE_NOWAIT;
	if (file->f_mode & FMODE_WRITE)
		atomic_inc(&LANEFS_I(inode)->li_writers);
	return 0;
}

/* The last writer gives blocks past the end back. */
static int lanefs_file_release(struct inode *inode, struct file *file)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	bool preallocated;

	if (!(file->f_mode & FMODE_WRITE) || !atomic_dec_and_test(&li->li_writers))
		return 0;
	WRITE_ONCE(li->li_written, false);
	/* Writeback that saw a writer has noted what it allocated ahead. */
	down_read(&li->li_tree_sem);
	preallocated = li->li_preallocated;
	up_read(&li->li_tree_sem);
	if (!preallocated)
		return 0;
	inode_lock(inode);
	/* Where the file system is frozen a later close does it. */
	if (!atomic_read(&li->li_writers) && READ_ONCE(li->li_preallocated) && inode->i_nlink &&
	    !sb_rdonly(inode->i_sb) && sb_start_intwrite_trylock(inode->i_sb)) {
		lanefs_free_past_end(inode);
		sb_end_intwrite(inode->i_sb);
	}
	inode_unlock(inode);
	return 0;
}

const struct file_operations lanefs_file_fops = {
	LANEFS_FOPS_NOWAIT
	.llseek = lanefs_llseek,
	.read_iter = lanefs_read_iter,
	.write_iter = lanefs_write_iter,
	.mmap = lanefs_mmap,
	.open = lanefs_file_open,
	.release = lanefs_file_release,
	.iopoll = iocb_bio_iopoll,
	.fsync = lanefs_fsync,
	.fallocate = lanefs_fallocate,
	.unlocked_ioctl = lanefs_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.splice_read = lanefs_splice_read,
	.splice_write = iter_file_splice_write,
	.setlease = generic_setlease,
};

/*
 * Before the size on disk is changed to `size`: writes the data between the size on disk and that one.
 * The file would else have its new size after a crash, and zeros where it had been written to. The
 * inode is locked.
 */
int lanefs_write_below(struct inode *inode, loff_t size)
{
	loff_t from = READ_ONCE(LANEFS_I(inode)->li_disk_size), to = min(size, i_size_read(inode));

	lockdep_assert_held(&inode->i_rwsem);
	return from < to ? filemap_write_and_wait_range(inode->i_mapping, from, to - 1) : 0;
}

/* Logs the size of a file that has no blocks to lose. One without links is an orphan. */
int lanefs_log_size(struct inode *inode, loff_t size)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_handle h;
	int err;

	err = lanefs_begin_inode(&h, inode);
	if (err)
		return err;
	lanefs_orphan(&h, inode, !inode->i_nlink);
	down_write(&li->li_tree_sem);
	li->li_disk_size = size;
	lanefs_inode_log(&h, inode, true);
	up_write(&li->li_tree_sem);
	lanefs_end(&h);
	return 0;
}

static int lanefs_set_size(struct inode *inode, loff_t size)
{
	loff_t old = i_size_read(inode);
	int err;

	inode_dio_wait(inode);
	err = lanefs_write_below(inode, size);
	if (!err)
		err = lanefs_zero_tail(inode, min(old, size));
	if (err)
		return err;
	filemap_invalidate_lock(inode->i_mapping);
	truncate_setsize(inode, size);
	lanefs_delalloc_drop(inode, DIV_ROUND_UP_ULL(size, LANEFS_BLOCK_SIZE), LANEFS_MAX_FILE_BLOCKS);
	if (size > old)
		err = lanefs_log_size(inode, size);
	else
		err = lanefs_truncate_blocks(inode, size);
	filemap_invalidate_unlock(inode->i_mapping);
	return err;
}

/* Truncation to the size that the file has: what fallocate() took past the end goes. */
static int lanefs_truncate_same_size(struct inode *inode)
{
	return lanefs_maps_past_end(inode) ? lanefs_free_past_end(inode) : 0;
}

static int lanefs_file_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	bool sync = false;
	int err;

	err = lanefs_setattr_prepare(idmap, dentry, attr);
	if (err)
		return err;
	if ((attr->ia_valid & ATTR_SIZE) && attr->ia_size != i_size_read(inode)) {
		err = lanefs_set_size(inode, attr->ia_size);
		if (err)
			return err;
		sync = IS_SYNC(inode);
		/* Changing the size does change the times. */
		if (!(attr->ia_valid & ATTR_MTIME)) {
			attr->ia_valid |= ATTR_MTIME | ATTR_CTIME;
			attr->ia_mtime = current_time(inode);
			attr->ia_ctime = attr->ia_mtime;
		}
	} else if (attr->ia_valid & ATTR_SIZE) {
		err = lanefs_truncate_same_size(inode);
		if (err)
			return err;
	}
	/* Both are done; a capability cannot be taken away twice. */
	attr->ia_valid &= ~(ATTR_SIZE | ATTR_KILL_PRIV);
	err = lanefs_setattr(idmap, dentry, attr);
	if (!err && sync)
		err = lanefs_make_durable(lanefs_journal_of(inode),
					  READ_ONCE(LANEFS_I(inode)->li_seq));
	return err;
}

const struct inode_operations lanefs_file_iops = {
	.setattr = lanefs_file_setattr,
	.getattr = lanefs_getattr,
	.listxattr = lanefs_listxattr,
	.fileattr_get = lanefs_fileattr_get,
	.fileattr_set = lanefs_fileattr_set,
	LANEFS_ACL_OPS,
	.fiemap = lanefs_fiemap,
};
