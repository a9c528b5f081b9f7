// SPDX-License-Identifier: GPL-2.0-only
/* What operations on names do alike (namei.c, rename.c): names and links come and go. */
#include "dir/dir.h"

/* After an operation in `dir`, without a handle: with -o dirsync or sync it waits for the device. */
int lanefs_dirsync(struct inode *dir)
{
	if (!IS_DIRSYNC(dir))
		return 0;
	return lanefs_make_durable(lanefs_journal_of(dir), READ_ONCE(LANEFS_I(dir)->li_seq));
}

void lanefs_touch_dir(struct lanefs_handle *h, struct inode *dir)
{
	lanefs_set_mtime(dir, lanefs_touch_ctime(dir));
	lanefs_inode_journal(h, dir, true);
}

/* Reserves what adding a name takes. */
int lanefs_reserve_name(struct lanefs_handle *h, struct inode *dir)
{
	return lanefs_reserve(h, lanefs_domain_of(dir), lanefs_tree_blocks_needed(dir),
			      LANEFS_FOR_METADATA);
}

/* Takes back an inode that could not get its name. */
void lanefs_undo_create(struct lanefs_handle *h, struct inode *inode)
{
	/* Its number may be given out again at once. */
	lanefs_icache_forget(inode);
	if (S_ISLNK(inode->i_mode))
		lanefs_symlink_drop(h, inode);
	lanefs_xattr_drop(h, inode);
	lanefs_inode_free(h, inode);
	/* Nothing is left for the eviction to do. */
	lanefs_buf_put(LANEFS_I(inode)->li_buf);
	LANEFS_I(inode)->li_buf = NULL;
	lanefs_set_links(inode, 0);
}

int lanefs_add_name(struct lanefs_handle *h, struct inode *dir, struct dentry *dentry,
		    struct inode *inode)
{
	const struct qstr *name = &dentry->d_name;
	int err;

	err = lanefs_dir_add(h, dir, name->name, name->len, inode->i_ino, inode->i_mode);
	if (err)
		return err;
	err = lanefs_span_add(h, dir, name, inode);
	if (err)
		lanefs_abort(LANEFS_SB(dir->i_sb));
	return err;
}

/* `dir` has lost a subdirectory. */
int lanefs_lose_subdir(struct inode *dir)
{
	if (dir->i_nlink <= 2) {
		lanefs_error(LANEFS_SB(dir->i_sb), "directory %llu has a wrong link count",
			     lanefs_number(dir));
		return -EUCLEAN;
	}
	lanefs_set_links(dir, dir->i_nlink - 1);
	return 0;
}

/* The inode has lost a name (a directory: its only one). */
int lanefs_lose_link(struct lanefs_handle *h, struct inode *inode)
{
	if (!inode->i_nlink) {
		lanefs_error(LANEFS_SB(inode->i_sb), "inode %llu has more names than links",
			     lanefs_number(inode));
		return -EUCLEAN;
	}
	lanefs_touch_ctime(inode);
	lanefs_set_links(inode, S_ISDIR(inode->i_mode) ? 0 : inode->i_nlink - 1);
	if (!inode->i_nlink)
		lanefs_orphan(h, inode, true);
	lanefs_inode_journal(h, inode, true);
	return 0;
}
