// SPDX-License-Identifier: GPL-2.0-only
/* Orphans: inodes whose deletion, truncation or shift a crash interrupted. */
#include <linux/slab.h>

#include "file/file.h"

/* Deletes the inode if it has no links, or ends its shift, or cuts it to its size. */
static int lanefs_orphan_process(struct lanefs_domain *domain, u64 index)
{
	struct inode *inode = lanefs_iget(domain->d_sbi->s_vfs, lanefs_ino(domain->d_id, index));
	struct lanefs_handle h;
	int err = 0;

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	LANEFS_I(inode)->li_orphan = true;
	if (inode->i_nlink && LANEFS_I(inode)->li_shift_by) {
		err = lanefs_shift_recover(inode);
	} else if (inode->i_nlink) {
		if (S_ISREG(inode->i_mode))
			err = lanefs_free_past_end(inode);
		if (!err)
			err = lanefs_handle_start_inode(&h, inode);
		if (!err) {
			lanefs_orphan(&h, inode, false);
			lanefs_handle_stop(&h);
		}
	}
	iput(inode);
	return err;
}

static int lanefs_orphans_of_block(struct lanefs_domain *domain, struct lanefs_ibitmap *map)
{
	u64 first = (map - domain->d_ibitmaps) * LANEFS_BITMAP_BITS;
	struct lanefs_buf *buf = lanefs_ibitmap_orphans(domain, map);
	u64 inodes = domain->d_sbi->s_domain_inodes;
	u32 count = min_t(u64, LANEFS_BITMAP_BITS, inodes - first), bit;
	void *bits;
	int err = 0;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	bits = kmalloc(LANEFS_BODY_SIZE, GFP_KERNEL);
	if (!bits)
		return -ENOMEM;
	mutex_lock(&buf->b_mutex);
	memcpy(bits, lanefs_buf_bits(buf), LANEFS_BODY_SIZE);
	mutex_unlock(&buf->b_mutex);
	for (bit = find_next_bit_le(bits, count, 0); bit < count && !err;
	     bit = find_next_bit_le(bits, count, bit + 1))
		err = lanefs_orphan_process(domain, first + bit);
	kfree(bits);
	return err;
}

/**
 * lanefs_orphans_process() - finish deletions, truncations and shifts that a crash interrupted
 * @sbi: the file system
 *
 * Context: When the journals begin to run, after lanefs_orphans_scan(), before anybody else may
 * write; opens handles.
 * Return: 0, or the first error; that of a deletion evict_inode() keeps to itself.
 */
int lanefs_orphans_process(struct lanefs_sb *sbi)
{
	struct lanefs_domain *domain;
	int err = 0;
	u64 at;
	u32 i;

	for (i = 0; i < sbi->s_domains; i++) {
		domain = sbi->s_domain[i];
		for (at = 0; at < domain->d_layout.ibitmap_blocks && !err; at++)
			if (domain->d_ibitmaps[at].im_orphaned)
				err = lanefs_orphans_of_block(domain, &domain->d_ibitmaps[at]);
	}
	return err;
}
