// SPDX-License-Identifier: GPL-2.0-only
/* Operations on regular files, and fsync of any inode. */
#include <linux/blkdev.h>
#include <linux/falloc.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/uio.h>
#include <linux/writeback.h>

#include "file/file.h"

/* Completes a read that the page cache served in part. */
static ssize_t lanefs_read_rest(struct kiocb *iocb, struct iov_iter *to, ssize_t before)
{
	ssize_t count = generic_file_read_iter(iocb, to);

	return count > 0 || !before ? before + count : before;
}

static ssize_t lanefs_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t count;

	if (lanefs_is_shutdown(inode->i_sb))
		return -EIO;
	/* A block of a log may be another's before a read of it is over; the page's lock prevents that. */
	if ((iocb->ki_flags & IOCB_DIRECT) && lanefs_is_log(inode->i_sb))
		iocb->ki_flags &= ~IOCB_DIRECT;
	if (!(iocb->ki_flags & IOCB_DIRECT)) {
		count = lanefs_read_shared(iocb, to);
		return count && !iov_iter_count(to) ? count : lanefs_read_rest(iocb, to, count);
	}
	return lanefs_direct_read(iocb, to);
}

/* It does not come by lanefs_read_iter() on all kernels. */
static ssize_t lanefs_splice_read(struct file *file, loff_t *pos, struct pipe_inode_info *pipe,
				  size_t count, unsigned int flags)
{
	if (lanefs_is_shutdown(file_inode(file)->i_sb))
		return -EIO;
	return lanefs_generic_splice_read(file, pos, pipe, count, flags);
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
	return lanefs_direct_write(iocb, from);
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

static vm_fault_t lanefs_mkwrite_once(struct vm_fault *vmf)
{
	struct inode *inode = file_inode(vmf->vma->vm_file);
	vm_fault_t result = VM_FAULT_SIGBUS;

	filemap_invalidate_lock_shared(inode->i_mapping);
	/* It may have become so meanwhile: then what is dirty is being written. */
	if (!IS_IMMUTABLE(inode))
		result = lanefs_iomap_mkwrite(vmf, &lanefs_iomap_ops);
	filemap_invalidate_unlock_shared(inode->i_mapping);
	return result;
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
	result = lanefs_mkwrite_once(vmf);
	if (result == VM_FAULT_SIGBUS) {
		/* There may be space now that the page is not locked, also where others have made it. */
		flushed = lanefs_flush_delayed(inode->i_sb, false);
		if (flushed >= 0)
			result = lanefs_mkwrite_once(vmf);
	}
	sb_end_pagefault(inode->i_sb);
	if (flushed >= 0)
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

/**
 * lanefs_fsync() - write an inode's data and make its changes durable (fsync)
 * @file: of the inode, also a directory
 * @start: first byte of the data
 * @end: last byte
 * @datasync: leave a change of nothing but times alone
 *
 * Commits the last transaction that changed the inode with all that this one needs (format.h): the
 * inode, and the names that it got or lost in the same operations.
 *
 * Context: Outside of handles, with no page locked. With strict=on it may wait for free segments.
 * Return: 0, the error of writing the data, -EIO after an abort, or -EINTR: killed in that wait.
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

const struct inode_operations lanefs_file_iops = {
	.setattr = lanefs_file_setattr,
	.getattr = lanefs_getattr,
	.listxattr = lanefs_listxattr,
	.fileattr_get = lanefs_fileattr_get,
	.fileattr_set = lanefs_fileattr_set,
	LANEFS_ACL_OPS,
	.fiemap = lanefs_fiemap,
};
