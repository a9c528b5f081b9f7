// SPDX-License-Identifier: GPL-2.0-only
/* Symbolic links: the target is in the inode, or in a metadata block of its own (core/symlink.h). */
#include <linux/namei.h>
#include <linux/slab.h>

#include "core/symlink.h"
#include "inode/inode.h"

/**
 * lanefs_symlink_store() - store the target of a new symbolic link
 * @h: the handle
 * @inode: the link, to be journaled afterwards
 * @target: the target
 * @length: its bytes; more than LANEFS_INLINE_SYMLINK take a block
 *
 * Context: In a handle of the inode's domain that has reserved a block.
 * Return: 0 or the error of lanefs_buf_alloc().
 */
int lanefs_symlink_store(struct lanefs_handle *h, struct inode *inode, const char *target,
			 unsigned int length)
{
	struct lanefs_domain *domain = lanefs_domain_of(inode);
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_index *index = (struct lanefs_index *)li->li_root;
	struct lanefs_buf *buf;

	li->li_disk_size = length;
	i_size_write(inode, length);
	if (length <= LANEFS_INLINE_SYMLINK) {
		memcpy(li->li_root, target, length);
		return 0;
	}
	buf = lanefs_buf_alloc(h, domain, LANEFS_MAGIC_SYMLINK, inode->i_ino);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	lanefs_symlink_split(target, length, li->li_root, buf->b_data);
	index->ix_block = cpu_to_le64(buf->b_block);
	lanefs_buf_put(buf);
	li->li_level = 1;
	li->li_count = 1;
	lanefs_add_blocks(inode, 1);
	return 0;
}

/**
 * lanefs_symlink_drop() - free the block of a symbolic link's target, if it has one
 * @h: the handle
 * @inode: the link, to be freed afterwards
 *
 * Context: In a handle of the inode's domain, when nobody else knows the inode.
 * Return: 0 or the error of lanefs_free_blocks().
 */
int lanefs_symlink_drop(struct lanefs_handle *h, struct inode *inode)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_index *index = (struct lanefs_index *)li->li_root;

	if (!li->li_level)
		return 0;
	li->li_level = 0;
	li->li_count = 0;
	lanefs_add_blocks(inode, -1);
	return lanefs_free_blocks(h, lanefs_domain_of(inode), le64_to_cpu(index->ix_block), 1,
				  true);
}

static const char *lanefs_get_link(struct dentry *dentry, struct inode *inode,
				   struct delayed_call *done)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	const struct lanefs_index *index = (struct lanefs_index *)li->li_root;
	loff_t size = i_size_read(inode);
	struct lanefs_buf *buf;
	char *target;

	if (!li->li_level) {
		/* The root of the inode is zero-padded and never changes. */
		return li->li_root;
	}
	if (!dentry)
		return ERR_PTR(-ECHILD);
	buf = lanefs_buf_read(lanefs_journal_of(inode), le64_to_cpu(index->ix_block),
			      LANEFS_MAGIC_SYMLINK, inode->i_ino);
	if (IS_ERR(buf))
		return ERR_CAST(buf);
	target = kmalloc(size + 1, GFP_KERNEL);
	if (target) {
		lanefs_symlink_join(target, size, li->li_root, buf->b_data);
		target[size] = '\0';
	}
	lanefs_buf_put(buf);
	if (!target)
		return ERR_PTR(-ENOMEM);
	set_delayed_call(done, kfree_link, target);
	return target;
}

const struct inode_operations lanefs_symlink_iops = {
	.get_link = lanefs_get_link,
	.setattr = lanefs_setattr,
	.getattr = lanefs_getattr,
	.listxattr = lanefs_listxattr,
	.fileattr_get = lanefs_fileattr_get,
	.fileattr_set = lanefs_fileattr_set,
};
