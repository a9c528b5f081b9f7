// SPDX-License-Identifier: GPL-2.0-only
/*
 * fsync of one page (not with ablate=fsync). The page cache's writeback would put the inode on the
 * superblock's list of those under writeback, and take it off again, under one lock for all. A page whose
 * block is there and written is written from under its lock instead: it is clean to the page cache
 * then, and not under writeback. So what must not miss the I/O has to lock the page, or to wait for
 * li_writeouts (this inode's) or for the readers of s_writeout: another fsync, a direct read, a sync
 * of the whole file system. sync_file_range() does not see it.
 *
 * A page is in li_writeouts before it is clean. Who finds it clean, and looks there afterwards, finds
 * it there or it is on the device; so pages of one inode are written at the same time.
 *
 * In a log that is what is written over all the same (not with strict=on), as F2FS does: the block
 * would else have to be mapped anew, and that be committed. Not in what a collector empties: it reads
 * blocks without their pages' locks, and waits for li_writeouts before.
 */
#include <linux/pagemap.h>

#include "file/file.h"

/* A page that an fsync writes. */
struct lanefs_writeout {
	struct list_head node;	/* in li_writeouts, by seq */
	u64 seq;
	unsigned long index;
};

/* The only dirty page of the range; false where there is none, or more than one. */
static bool lanefs_only_dirty_page(struct address_space *mapping, loff_t start, loff_t end,
				   unsigned long *index)
{
	unsigned long last = end >> PAGE_SHIFT, next;

	*index = start >> PAGE_SHIFT;
	if (!xa_find(&mapping->i_pages, index, last, PAGECACHE_TAG_DIRTY))
		return false;
	next = *index;
	return !xa_find_after(&mapping->i_pages, &next, last, PAGECACHE_TAG_DIRTY);
}

/* Whether a locked page may be written to its block, if that is a written one. */
static bool lanefs_may_write_in_place(const struct inode *inode, struct folio *folio)
{
	loff_t end = folio_pos(folio) + PAGE_SIZE;

	return !READ_ONCE(LANEFS_SB(inode->i_sb)->s_aborted) && folio_test_uptodate(folio) &&
	       folio_test_dirty(folio) && !folio_test_writeback(folio) &&
	       end <= i_size_read(inode) && end <= READ_ONCE(LANEFS_I(inode)->li_disk_size);
}

/* The block that may be overwritten in place, or 0. */
static u64 lanefs_block_in_place(struct inode *inode, u64 logical)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_map map;
	int err;

	down_read(&li->li_tree_sem);
	err = lanefs_map_find(inode, logical, &map);
	up_read(&li->li_tree_sem);
	return err || map.unwritten ? 0 : map.block;
}

/* The same in a log; the block reserved for the page is released. */
static u64 lanefs_block_in_log(struct inode *inode, u64 logical)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_map map;
	u64 block = 0;

	down_write(&li->li_tree_sem);
	if (!lanefs_map_find(inode, logical, &map) && map.block && !map.unwritten &&
	    !lanefs_segments_emptied(inode->i_sb, map.block)) {
		lanefs_delalloc_cancel(inode, logical);
		block = map.block;
	}
	up_write(&li->li_tree_sem);
	return block;
}

/* The page is not dirty any more, and stores to mappings of it wait for its lock. */
static bool lanefs_folio_clear_dirty(struct folio *folio)
{
	struct address_space *mapping = folio->mapping;
	unsigned long flags;

	if (!folio_clear_dirty_for_io(folio))
		return false;
	xa_lock_irqsave(&mapping->i_pages, flags);
	/* A write by DMA may have dirtied the page again. */
	if (!folio_test_dirty(folio)) {
		__xa_clear_mark(&mapping->i_pages, folio->index, PAGECACHE_TAG_DIRTY);
		__xa_clear_mark(&mapping->i_pages, folio->index, PAGECACHE_TAG_TOWRITE);
	}
	xa_unlock_irqrestore(&mapping->i_pages, flags);
	return true;
}

static void lanefs_writeout_begin(struct lanefs_inode *li, struct lanefs_writeout *writeout)
{
	spin_lock(&li->li_writeout_lock);
	writeout->seq = li->li_writeout_seq++;
	list_add_tail(&writeout->node, &li->li_writeouts);
	spin_unlock(&li->li_writeout_lock);
}

static void lanefs_writeout_end(struct lanefs_inode *li, struct lanefs_writeout *writeout)
{
	spin_lock(&li->li_writeout_lock);
	list_del(&writeout->node);
	spin_unlock(&li->li_writeout_lock);
	/* Pairs with the waiter's queueing itself before it looks at the list. */
	smp_mb();
	wake_up_var(&li->li_writeouts);
}

/* Whether a page from `first` to `last` is being written whose write began before that of `seq`. */
static bool lanefs_writeout_pending(struct lanefs_inode *li, u64 seq, unsigned long first,
				    unsigned long last)
{
	struct lanefs_writeout *writeout;
	bool pending = false;

	spin_lock(&li->li_writeout_lock);
	list_for_each_entry(writeout, &li->li_writeouts, node) {
		if (writeout->seq >= seq)
			break;
		pending = writeout->index >= first && writeout->index <= last;
		if (pending)
			break;
	}
	spin_unlock(&li->li_writeout_lock);
	return pending;
}

static void lanefs_write_folio(struct inode *inode, unsigned long index)
{
	struct lanefs_writeout writeout = { .index = index };
	struct lanefs_inode *li = LANEFS_I(inode);
	struct folio *folio = lanefs_get_folio(inode->i_mapping, index, FGP_LOCK, 0);
	u64 block = 0;
	int err;

	if (!folio)
		return;
	lanefs_writeout_begin(li, &writeout);
	if (lanefs_may_write_in_place(inode, folio))
		block = lanefs_is_log(inode->i_sb) ? lanefs_block_in_log(inode, index) :
						     lanefs_block_in_place(inode, index);
	if (block && lanefs_folio_clear_dirty(folio)) {
		err = lanefs_block_sync(LANEFS_SB(inode->i_sb), block, &folio->page,
					REQ_OP_WRITE | REQ_SYNC);
		if (err)
			mapping_set_error(inode->i_mapping, err);
	}
	lanefs_writeout_end(li, &writeout);
	folio_unlock(folio);
	folio_put(folio);
}

/*
 * Before an fsync has the page cache write the range: writes it where that is one page. Errors are
 * the mapping's.
 */
void lanefs_writeout(struct inode *inode, loff_t start, loff_t end)
{
	struct lanefs_sb *sbi = LANEFS_SB(inode->i_sb);
	unsigned long index;
	int section;

	if (lanefs_ablated(sbi, LANEFS_ABLATE_FSYNC) ||
	    READ_ONCE(sbi->s_options.strict) == LANEFS_STRICT_ON)
		return;
	section = srcu_read_lock(&sbi->s_writeout);
	if (lanefs_only_dirty_page(inode->i_mapping, start, end, &index))
		lanefs_write_folio(inode, index);
	srcu_read_unlock(&sbi->s_writeout, section);
}

/* Waits until no fsync writes a page of the range that it began with before. */
void lanefs_writeout_wait(struct inode *inode, loff_t start, loff_t end)
{
	unsigned long first = start >> PAGE_SHIFT, last = end >> PAGE_SHIFT;
	struct lanefs_inode *li = LANEFS_I(inode);
	bool idle;
	u64 seq;

	spin_lock(&li->li_writeout_lock);
	seq = li->li_writeout_seq;
	idle = list_empty(&li->li_writeouts);
	spin_unlock(&li->li_writeout_lock);
	if (!idle)
		wait_var_event(&li->li_writeouts, !lanefs_writeout_pending(li, seq, first, last));
}

/*
 * Before a direct read: what was written to the page cache before is on the device then. -EAGAIN:
 * it is not, and the caller does not wait.
 */
int lanefs_writeout_range(struct inode *inode, loff_t start, loff_t end, bool wait)
{
	struct address_space *mapping = inode->i_mapping;
	int err;

	if (!wait)
		return filemap_range_needs_writeback(mapping, start, end) ||
		       lanefs_writeout_pending(LANEFS_I(inode), U64_MAX, start >> PAGE_SHIFT,
					       end >> PAGE_SHIFT) ? -EAGAIN : 0;
	err = filemap_write_and_wait_range(mapping, start, end);
	lanefs_writeout_wait(inode, start, end);
	return err;
}

/**
 * lanefs_writeout_wait_all() - wait for the fsyncs of one page that are under way
 * @sbi: the file system
 *
 * Their pages are not under writeback to the page cache, which has written all that it knew of.
 *
 * Context: Sleeps for an SRCU grace period, with no page locked: an fsync may wait for it.
 */
void lanefs_writeout_wait_all(struct lanefs_sb *sbi)
{
	synchronize_srcu_expedited(&sbi->s_writeout);
}
