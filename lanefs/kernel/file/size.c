// SPDX-License-Identifier: GPL-2.0-only
/* The size of a file: truncation, and what lies in its last block and behind it. */
#include <linux/mm.h>
#include <linux/pagemap.h>

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

/* Whether blocks beyond the end of the file are allocated, as far as can be known. */
bool lanefs_maps_past_end(struct inode *inode)
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
		err = lanefs_size_journal(inode, size);
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

int lanefs_file_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
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
