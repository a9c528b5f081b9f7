// SPDX-License-Identifier: GPL-2.0-only
/*
 * The flags of an inode (chattr): immutable, append only and so on. They are in li_flags, and those
 * that the VFS asks for in i_flags as well. i_rwsem guards both.
 */
#include <linux/pagemap.h>
#include <linux/fileattr.h>	/* which needs others before it */

#include "core/flags.h"
#include "inode/inode.h"

void lanefs_set_flags(struct inode *inode, u32 flags)
{
	unsigned int vfs = 0;

	if (flags & LANEFS_FLAG_SYNC)
		vfs |= S_SYNC;
	if (flags & LANEFS_FLAG_IMMUTABLE)
		vfs |= S_IMMUTABLE;
	if (flags & LANEFS_FLAG_APPEND)
		vfs |= S_APPEND;
	if (flags & LANEFS_FLAG_NOATIME)
		vfs |= S_NOATIME;
	if (flags & LANEFS_FLAG_DIRSYNC)
		vfs |= S_DIRSYNC;
	WRITE_ONCE(LANEFS_I(inode)->li_flags, flags);
	inode_set_flags(inode, vfs, S_SYNC | S_IMMUTABLE | S_APPEND | S_NOATIME | S_DIRSYNC);
}

/* Sets the flags that a new inode inherits from its directory. */
void lanefs_inherit_flags(struct inode *inode, const struct inode *dir)
{
	lanefs_set_flags(inode, LANEFS_I(dir)->li_flags & LANEFS_FLAGS_INHERITED &
				lanefs_flags_for(inode->i_mode));
}

void lanefs_fill_attributes(const struct inode *inode, struct kstat *stat)
{
	u32 flags = READ_ONCE(LANEFS_I(inode)->li_flags);

	if (flags & LANEFS_FLAG_IMMUTABLE)
		stat->attributes |= STATX_ATTR_IMMUTABLE;
	if (flags & LANEFS_FLAG_APPEND)
		stat->attributes |= STATX_ATTR_APPEND;
	if (flags & LANEFS_FLAG_NODUMP)
		stat->attributes |= STATX_ATTR_NODUMP;
	stat->attributes_mask |= STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND | STATX_ATTR_NODUMP;
}

/**
 * lanefs_fileattr_get() - tell the flags of an inode (fileattr_get)
 * @dentry: of the inode
 * @fa: gets them
 *
 * Context: Takes no lock, so it may see the flags before or after a change.
 * Return: 0.
 */
int lanefs_fileattr_get(struct dentry *dentry, struct file_kattr *fa)
{
	fileattr_fill_flags(fa, READ_ONCE(LANEFS_I(d_inode(dentry))->li_flags));
	return 0;
}

/*
 * Has the file's data written, with stores to mappings refused from the beginning: what is clean
 * then can only become dirty by a fault, which sees the flag, or by a write that waits for the
 * inode's lock. Writes without it want a page that is dirty.
 */
static int lanefs_make_immutable(struct inode *inode)
{
	int err;

	filemap_invalidate_lock(inode->i_mapping);
	inode_set_flags(inode, S_IMMUTABLE, S_IMMUTABLE);
	filemap_invalidate_unlock(inode->i_mapping);
	inode_dio_wait(inode);
	err = filemap_write_and_wait(inode->i_mapping);
	if (err)
		inode_set_flags(inode, 0, S_IMMUTABLE);
	return err;
}

/**
 * lanefs_fileattr_set() - change the flags of an inode (fileattr_set)
 * @idmap: of the mount
 * @dentry: of the inode
 * @fa: all flags that it has from now on
 *
 * Context: With i_rwsem, outside of handles. Takes invalidate_lock, and writes the data, of a file
 * that becomes immutable.
 * Return: 0, -EOPNOTSUPP: a flag that inodes of its type cannot have, -EPERM: it stays immutable
 * and others change, the error of writing the data, or -EROFS.
 */
int lanefs_fileattr_set(struct mnt_idmap *idmap, struct dentry *dentry, struct file_kattr *fa)
{
	struct inode *inode = d_inode(dentry);
	u32 old = LANEFS_I(inode)->li_flags, changed = old ^ fa->flags;
	struct lanefs_handle h;
	int err;

	if (fileattr_has_fsx(fa) || (fa->flags & ~lanefs_flags_for(inode->i_mode)))
		return -EOPNOTSUPP;
	if ((old & fa->flags & LANEFS_FLAG_IMMUTABLE) && changed)
		return -EPERM;
	if (S_ISREG(inode->i_mode) && (changed & fa->flags & LANEFS_FLAG_IMMUTABLE)) {
		err = lanefs_make_immutable(inode);
		if (err)
			return err;
	}
	err = lanefs_handle_start_inode(&h, inode);
	if (err) {
		lanefs_set_flags(inode, old);
		return err;
	}
	lanefs_set_flags(inode, fa->flags);
	lanefs_touch_ctime(inode);
	lanefs_inode_journal(&h, inode, true);
	lanefs_handle_stop(&h);
	return 0;
}
