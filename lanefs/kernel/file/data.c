// SPDX-License-Identifier: GPL-2.0-only
/*
 * File data through iomap; what is written to a log goes its own way (rewrite.c). Blocks get into a
 * file as unwritten extents: at writeback (delalloc.c), or when it is written to directly; when their
 * data is on the device an I/O end makes them written ones and moves the size on disk. So no crash
 * shows blocks that were not written.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/swap.h>
#include <linux/writeback.h>

#include "file/file.h"

/* Whether the map is still valid for a cached, locked folio that is to be written to. */
static bool lanefs_iomap_valid(struct inode *inode, const struct iomap *iomap)
{
	lanefs_count_cached(inode);
	return iomap->validity_cookie == READ_ONCE(LANEFS_I(inode)->li_map_seq);
}

const struct lanefs_iomap_checks lanefs_iomap_checks = {
	.iomap_valid = lanefs_iomap_valid,
};

static void lanefs_iomap_fill(struct inode *inode, const struct lanefs_map *map, u32 seq,
			      struct iomap *iomap)
{
	const struct lanefs_inode *li = LANEFS_I(inode);

	iomap->offset = (loff_t)map->logical << LANEFS_BLOCK_SHIFT;
	iomap->length = map->length << LANEFS_BLOCK_SHIFT;
	iomap->bdev = inode->i_sb->s_bdev;
	iomap->flags = !map->fresh ? 0 : map->block ? IOMAP_F_PRIVATE : IOMAP_F_NEW;
	if (map->delayed && !map->block) {
		iomap->type = IOMAP_DELALLOC;
		iomap->addr = IOMAP_NULL_ADDR;
	} else if (!map->block) {
		iomap->type = IOMAP_HOLE;
		iomap->addr = IOMAP_NULL_ADDR;
	} else {
		iomap->type = map->unwritten ? IOMAP_UNWRITTEN : IOMAP_MAPPED;
		iomap->addr = map->block << LANEFS_BLOCK_SHIFT;
	}
	if (READ_ONCE(li->li_data_seq) > READ_ONCE(lanefs_journal_of(inode)->j_stable))
		iomap->flags |= IOMAP_F_DIRTY;
	iomap->validity_cookie = seq;
	lanefs_iomap_set_checks(iomap, &lanefs_iomap_checks);
}

/*
 * Sees to it that there are blocks at map->logical, from this domain, for a write of `count`; *map
 * is what is there then. -EAGAIN: they have been reserved meanwhile.
 */
static int lanefs_data_alloc_from(struct lanefs_domain *domain, struct inode *inode, u64 count,
				  bool ahead, struct lanefs_map *map, u32 *seq)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_sb *sbi = LANEFS_SB(inode->i_sb);
	struct lanefs_handle h;
	u32 domains[2];
	u64 want;
	int err;

	domains[0] = li->li_domain;
	domains[1] = domain->d_id;
	lanefs_alloc_prepare(domain, READ_ONCE(li->li_goal));
	err = lanefs_handle_start(&h, sbi, LANEFS_CREDITS, domains, 2);
	if (err)
		return err;
	down_write(&li->li_tree_sem);
	err = lanefs_map_find(inode, map->logical, map);
	if (err || map->block)
		goto out;
	lanefs_delalloc_clip(inode, map, U64_MAX);
	if (map->delayed) {
		err = -EAGAIN;
		goto out;
	}
	want = count + (ahead ? lanefs_prealloc_blocks(inode, map, count) : 0);
	want = min_t(u64, min_t(u64, want, map->length), LANEFS_BITMAP_BITS);
	err = lanefs_reserve(&h, lanefs_domain_of(inode), 2 * lanefs_tree_blocks_needed(inode),
			     LANEFS_FOR_METADATA);
	if (err)
		goto out;
	while (want > 1 && lanefs_reserve(&h, domain, want, LANEFS_FOR_DATA))
		want /= 2;
	if (want == 1)
		err = lanefs_reserve(&h, domain, 1, LANEFS_FOR_DATA);
	if (!err)
		err = lanefs_fill_hole(&h, inode, domain, want, map);
	if (!err && ahead && map->length > count)
		li->li_preallocated = true;
out:
	*seq = li->li_map_seq;
	up_write(&li->li_tree_sem);
	if (err && err != -ENOSPC && err != -EAGAIN)
		lanefs_abort(sbi);
	lanefs_handle_stop(&h);
	return err;
}

static int lanefs_data_alloc_anywhere(struct inode *inode, u64 count, bool ahead,
				      struct lanefs_map *map, u32 *seq)
{
	struct lanefs_sb *sbi = LANEFS_SB(inode->i_sb);
	struct lanefs_domain *domain;
	int err = -ENOSPC;
	u32 i;

	for (i = 0; i < sbi->s_domains && err == -ENOSPC; i++) {
		domain = sbi->s_domain[(LANEFS_I(inode)->li_domain + i) % sbi->s_domains];
		if (lanefs_has_room(domain, 1, LANEFS_FOR_DATA))
			err = lanefs_data_alloc_from(domain, inode, count, ahead, map, seq);
	}
	return err;
}

/*
 * Allocates 1 to `count` blocks for the hole at map->logical, or, with `ahead`, more if the file
 * grows: from the inode's own domain as long as it has some, then from the next that has.
 */
int lanefs_data_alloc(struct inode *inode, u64 count, bool ahead, struct lanefs_map *map, u32 *seq)
{
	int err, retries = 0;

	do {
		err = lanefs_delalloc_allocate(inode, map, seq);
		if (!err && !map->block)
			err = lanefs_data_alloc_anywhere(inode, count, ahead, map, seq);
	} while (err == -EAGAIN ||
		 (err == -ENOSPC && lanefs_retry_alloc(LANEFS_SB(inode->i_sb), true, &retries)));
	return err;
}

/* Whether a write most likely needs a reservation: it appends, or it writes to a log. */
static bool lanefs_reserves_first(const struct inode *inode, loff_t pos, unsigned int flags)
{
	const unsigned int others = IOMAP_DIRECT | IOMAP_FAULT | IOMAP_NOWAIT | IOMAP_ZERO;

	return (flags & IOMAP_WRITE) && !(flags & others) &&
	       (pos >= i_size_read(inode) || lanefs_is_log(inode->i_sb));
}

static int lanefs_iomap_begin(struct inode *inode, loff_t pos, loff_t length, unsigned int flags,
			      struct iomap *iomap, struct iomap *srcmap)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	u64 first = pos >> LANEFS_BLOCK_SHIFT;
	u64 count = ((pos + length - 1) >> LANEFS_BLOCK_SHIFT) - first + 1;
	bool rewritten = false;
	struct lanefs_map map;
	u32 seq;
	int err;

	if (first >= LANEFS_MAX_FILE_BLOCKS)
		return -EFBIG;
	if (lanefs_reserves_first(inode, pos, flags)) {
		map.logical = first;
		err = lanefs_delalloc_reserve(inode, count, false, &map, &seq);
		goto out;
	}
	if (!(flags & IOMAP_NOWAIT))
		down_read(&li->li_tree_sem);
	else if (!down_read_trylock(&li->li_tree_sem))
		return -EAGAIN;
	if ((flags & IOMAP_NOWAIT) && !lanefs_tree_cached(inode, first)) {
		up_read(&li->li_tree_sem);
		return -EAGAIN;
	}
	err = lanefs_map_find_shifted(inode, first, &map);
	/* A hole to readers of pages: the page of a reserved block is cached and dirty. */
	if (!err && (flags & (IOMAP_REPORT | IOMAP_WRITE | IOMAP_ZERO)))
		lanefs_delalloc_clip(inode, &map, first + count);
	seq = li->li_map_seq;
	rewritten = li->li_rewritten;
	up_read(&li->li_tree_sem);
	/* A non-blocking write uses one mapping or none: EAGAIN means that nothing was written. */
	if (!err && (flags & IOMAP_NOWAIT) && (flags & IOMAP_DIRECT) && (flags & IOMAP_WRITE) &&
	    map.length < count)
		return -EAGAIN;
	if (!err && ((flags & IOMAP_WRITE) || ((flags & IOMAP_ZERO) && map.block)) &&
	    ((flags & IOMAP_DIRECT) || !map.delayed) && lanefs_delalloc_wanted(inode, &map)) {
		if (flags & IOMAP_NOWAIT)
			return -EAGAIN;
		if (flags & IOMAP_DIRECT)
			err = lanefs_data_alloc(inode, count, true, &map, &seq);
		else
			err = lanefs_delalloc_reserve(inode, count, flags & IOMAP_FAULT, &map, &seq);
	}
out:
	if (err)
		return err;
	lanefs_iomap_fill(inode, &map, seq, iomap);
	/* It may have data that is being written, and not mapped yet. */
	if (iomap->type == IOMAP_HOLE && rewritten)
		iomap->flags |= IOMAP_F_PRIVATE;
	return 0;
}

/* A buffered write that ends early releases the reservation of the rest. */
static int lanefs_iomap_end(struct inode *inode, loff_t pos, loff_t length, ssize_t written,
			    unsigned int flags, struct iomap *iomap)
{
	bool reserved = (iomap->type == IOMAP_DELALLOC && (iomap->flags & IOMAP_F_NEW)) ||
			(iomap->type == IOMAP_MAPPED && (iomap->flags & IOMAP_F_PRIVATE));
	u64 from = (pos + written) >> LANEFS_BLOCK_SHIFT;
	u64 to = (iomap->offset + iomap->length) >> LANEFS_BLOCK_SHIFT;

	if (!reserved || (flags & IOMAP_FAULT) || written >= length)
		return 0;
	/* A caller that zeroes holds page faults off. */
	if (flags & IOMAP_ZERO)
		lanefs_delalloc_undo_locked(inode, from, to);
	else
		lanefs_delalloc_undo(inode, from, to);
	return 0;
}

/* A reserved hole has data where the page cache has, like an unwritten extent. */
static int lanefs_seek_begin(struct inode *inode, loff_t pos, loff_t length, unsigned int flags,
			     struct iomap *iomap, struct iomap *srcmap)
{
	int err = lanefs_walk_pause();

	if (!err)
		err = lanefs_iomap_begin(inode, pos, length, flags, iomap, srcmap);
	if (!err && iomap->type == IOMAP_HOLE && (iomap->flags & IOMAP_F_PRIVATE))
		iomap->type = IOMAP_UNWRITTEN;
	return err;
}

const struct iomap_ops lanefs_seek_ops = {
	.iomap_begin = lanefs_seek_begin,
};

const struct iomap_ops lanefs_iomap_ops = {
	.iomap_begin = lanefs_iomap_begin,
	.iomap_end = lanefs_iomap_end,
};

/*
 * To iomap, a block that will be written elsewhere is shared until it is written. A collector makes no
 * room, as a page fault does not: that may wait for a remount, which waits for the collector.
 */
static int lanefs_redirty_begin(struct inode *inode, loff_t pos, loff_t length, unsigned int flags,
			      struct iomap *iomap, struct iomap *srcmap)
{
	int err = lanefs_iomap_begin(inode, pos, length, flags | IOMAP_FAULT, iomap, srcmap);

	if (!err && iomap->type == IOMAP_MAPPED) {
		iomap->flags |= IOMAP_F_SHARED;
		*srcmap = *iomap;
	}
	return err;
}

static const struct iomap_ops lanefs_redirty_ops = {
	.iomap_begin = lanefs_redirty_begin,
	.iomap_end = lanefs_iomap_end,
};

/* Dirties the block at `pos` with its own content. The inode is locked, or is shared. */
int lanefs_redirty_block(struct inode *inode, loff_t pos)
{
	loff_t length = min_t(loff_t, i_size_read(inode) - pos, LANEFS_BLOCK_SIZE);

	lockdep_assert_held(&inode->i_rwsem);
	return length <= 0 ? 0 : lanefs_iomap_unshare(inode, pos, length, &lanefs_redirty_ops,
						      &lanefs_iomap_checks);
}

/*
 * The data of this range is on the device: its blocks become written ones, if they were not, and
 * the size on disk follows. `grows`: so does the file's end, which was before it, as a buffered read
 * would take what is unwritten for zeros.
 */
int lanefs_io_ended(struct inode *inode, loff_t offset, size_t size, bool unwritten, bool grows)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	u64 at = offset >> LANEFS_BLOCK_SHIFT;
	u64 end = DIV_ROUND_UP_ULL(offset + size, LANEFS_BLOCK_SIZE), done = end - at;
	struct lanefs_handle h;
	loff_t written;
	int err;

	might_sleep();
	for (; at < end; at += done) {
		err = lanefs_handle_start(&h, LANEFS_SB(inode->i_sb),
					  unwritten ? LANEFS_CREDITS : LANEFS_CREDITS_INODE,
					  &li->li_domain, 1);
		if (err)
			return err;
		/* If there is no block left the change may still need none. */
		(void)lanefs_reserve(&h, lanefs_domain_of(inode), lanefs_tree_blocks_needed(inode),
				     LANEFS_FOR_COMPLETION);
		down_write(&li->li_tree_sem);
		if (unwritten)
			err = lanefs_map_written(&h, inode, at, end - at, &done);
		written = min_t(loff_t, offset + size, (loff_t)(at + done) << LANEFS_BLOCK_SHIFT);
		if (!err && grows && written > i_size_read(inode))
			i_size_write(inode, written);
		written = min(written, i_size_read(inode));
		if (!err && written > li->li_disk_size)
			li->li_disk_size = written;
		lanefs_inode_journal(&h, inode, true);
		up_write(&li->li_tree_sem);
		if (err && err != -ENOSPC)
			lanefs_abort(LANEFS_SB(inode->i_sb));
		lanefs_handle_stop(&h);
		if (err)
			return err;
	}
	return 0;
}

/* Whether it writes blocks that are not mapped before it is over. */
static bool lanefs_ioend_rewrites(const struct iomap_ioend *ioend)
{
	return !lanefs_ioend_unwritten(ioend) && lanefs_is_log(ioend->io_inode->i_sb);
}

static void lanefs_ioend_finish(struct iomap_ioend *ioend)
{
	int err = blk_status_to_errno(lanefs_ioend_bio(ioend)->bi_status);
	unsigned int nofs = memalloc_nofs_save();

	if (lanefs_ioend_rewrites(ioend))
		err = lanefs_rewritten(ioend->io_inode, ioend->io_offset, ioend->io_size,
				       ioend->io_sector >> LANEFS_SECTOR_SHIFT, err);
	else if (!err)
		err = lanefs_io_ended(ioend->io_inode, ioend->io_offset, ioend->io_size,
				      lanefs_ioend_unwritten(ioend), false);
	iomap_finish_ioends(ioend, err);
	memalloc_nofs_restore(nofs);
}

/**
 * lanefs_io_work() - process the writes of a file's pages that have ended
 * @work: li_io_work of the inode
 *
 * Their blocks become written, or mapped, and the size on disk follows. Until the end of writeback
 * of their pages, which comes last, the inode stays in memory.
 *
 * Context: A worker of s_io_done; opens handles, and takes li_tree_sem.
 */
void lanefs_io_work(struct work_struct *work)
{
	struct lanefs_inode *li = container_of(work, struct lanefs_inode, li_io_work);
	struct iomap_ioend *ioend;
	unsigned long flags;
	LIST_HEAD(list);

	spin_lock_irqsave(&li->li_io_lock, flags);
	list_replace_init(&li->li_io_done, &list);
	spin_unlock_irqrestore(&li->li_io_lock, flags);
	iomap_sort_ioends(&list);
	while ((ioend = list_first_entry_or_null(&list, struct iomap_ioend, io_list))) {
		list_del_init(&ioend->io_list);
		iomap_ioend_try_merge(ioend, &list);
		lanefs_ioend_finish(ioend);
	}
}

static void lanefs_ioend_ended(struct bio *bio)
{
	struct iomap_ioend *ioend = lanefs_ioend_of(bio);
	struct lanefs_inode *li = LANEFS_I(ioend->io_inode);
	unsigned long flags;

	spin_lock_irqsave(&li->li_io_lock, flags);
	if (list_empty(&li->li_io_done))
		queue_work(LANEFS_SB(ioend->io_inode->i_sb)->s_io_done, &li->li_io_work);
	list_add_tail(&ioend->io_list, &li->li_io_done);
	spin_unlock_irqrestore(&li->li_io_lock, flags);
}

int lanefs_prepare_ioend(struct iomap_ioend *ioend, int status)
{
	const struct lanefs_inode *li = LANEFS_I(ioend->io_inode);

	if (lanefs_ioend_rewrites(ioend) ||
	    (!status && (lanefs_ioend_unwritten(ioend) ||
			 ioend->io_offset + (loff_t)ioend->io_size > READ_ONCE(li->li_disk_size))))
		lanefs_ioend_bio(ioend)->bi_end_io = lanefs_ioend_ended;
	return status;
}

struct lanefs_writeback {
	struct iomap_writepage_ctx ctx;
	u32 seq;	/* of the extent map that ctx.iomap was made from */
};

int lanefs_map_blocks(struct iomap_writepage_ctx *wpc, struct inode *inode, loff_t offset)
{
	struct lanefs_writeback *writeback = container_of(wpc, struct lanefs_writeback, ctx);
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_map map;
	int err;

	if (READ_ONCE(LANEFS_SB(inode->i_sb)->s_aborted))
		return -EIO;
	map.logical = offset >> LANEFS_BLOCK_SHIFT;
	if (lanefs_is_log(inode->i_sb)) {
		err = lanefs_rewrite(inode, &map);
		if (!err)
			lanefs_iomap_fill(inode, &map, 0, &wpc->iomap);
		return err;
	}
	/* A hole may have been reserved since. */
	if (wpc->iomap.type != IOMAP_HOLE && offset >= wpc->iomap.offset &&
	    offset < wpc->iomap.offset + wpc->iomap.length &&
	    writeback->seq == READ_ONCE(li->li_map_seq))
		return 0;
	err = lanefs_delalloc_allocate(inode, &map, &writeback->seq);
	if (!err)
		lanefs_iomap_fill(inode, &map, writeback->seq, &wpc->iomap);
	return err;
}

/* The page could not be mapped, and is not dirty any more. */
void lanefs_discard_folio(struct folio *folio, loff_t pos)
{
	u64 at = pos >> LANEFS_BLOCK_SHIFT;

	lanefs_delalloc_drop(folio->mapping->host, at, at + 1);
}

/*
 * The memory of a page has failed: it leaves the cache, and what it would have written is lost. The
 * reservation goes first, because the inode may go once the page has.
 */
int lanefs_error_remove(struct address_space *mapping, struct folio *folio)
{
	if (folio->mapping == mapping)
		lanefs_delalloc_drop(mapping->host, folio->index, folio->index + 1);
	return lanefs_generic_error_remove(mapping, folio);
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
static int lanefs_error_remove_page(struct address_space *mapping, struct page *page)
{
	return lanefs_error_remove(mapping, page_folio(page));
}
#endif

static int lanefs_writepages(struct address_space *mapping, struct writeback_control *wbc)
{
	struct lanefs_writeback writeback = {};

	return lanefs_iomap_writepages(mapping, wbc, &writeback.ctx);
}

static int lanefs_read_folio(struct file *file, struct folio *folio)
{
	lanefs_count_cached(folio->mapping->host);
	return lanefs_iomap_read_folio(folio, &lanefs_iomap_ops);
}

static void lanefs_readahead(struct readahead_control *rac)
{
	lanefs_count_cached(rac->mapping->host);
	lanefs_iomap_readahead(rac, &lanefs_iomap_ops);
}

#ifdef CONFIG_MIGRATION
static int lanefs_migrate_folio(struct address_space *mapping, struct folio *to,
				struct folio *from, enum migrate_mode mode)
{
	lanefs_count_cached(mapping->host);
	return filemap_migrate_folio(mapping, to, from, mode);
}
#else
#define lanefs_migrate_folio NULL
#endif

static sector_t lanefs_bmap(struct address_space *mapping, sector_t block)
{
	/* Blocks of a log do not stay where they are. */
	if (lanefs_is_log(mapping->host->i_sb))
		return 0;
	return iomap_bmap(mapping, block, &lanefs_iomap_ops);
}

/* A swap file's blocks are where they are from now on, also after a crash. */
static int lanefs_swap_activate(struct swap_info_struct *sis, struct file *file, sector_t *span)
{
	struct inode *inode = file_inode(file);
	int err;

	if (lanefs_is_log(inode->i_sb))
		return -EINVAL;
	inode_dio_wait(inode);
	err = vfs_fsync(file, 0);
	if (!err)
		err = lanefs_stabilise(lanefs_journal_of(inode), READ_ONCE(LANEFS_I(inode)->li_seq));
	return err ?: iomap_swapfile_activate(sis, file, span, &lanefs_iomap_ops);
}

const struct address_space_operations lanefs_aops = {
	.read_folio = lanefs_read_folio,
	.readahead = lanefs_readahead,
	.writepages = lanefs_writepages,
	.dirty_folio = lanefs_dirty_folio,
	.release_folio = iomap_release_folio,
	.invalidate_folio = iomap_invalidate_folio,
	.is_partially_uptodate = iomap_is_partially_uptodate,
	.migrate_folio = lanefs_migrate_folio,
	.bmap = lanefs_bmap,
	.direct_IO = noop_direct_IO,
	.swap_activate = lanefs_swap_activate,
	LANEFS_ERROR_REMOVE,
};
