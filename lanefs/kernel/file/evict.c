// SPDX-License-Identifier: GPL-2.0-only
/* The end of an inode in memory, and of one without links on disk. */
#include <linux/mm.h>

#include "file/file.h"

/* Deletes an inode without links. What fails is left to fsck, or to recovery as an orphan. */
static int lanefs_inode_delete(struct inode *inode)
{
	struct lanefs_handle h;
	int err = 0;

	if (S_ISREG(inode->i_mode))
		err = lanefs_free_range(inode, 0, LANEFS_MAX_FILE_BLOCKS);
	if (!err)
		err = lanefs_handle_start_inode(&h, inode);
	if (err)
		return err;
	if (S_ISLNK(inode->i_mode))
		err = lanefs_symlink_drop(&h, inode);
	if (!err)
		err = lanefs_xattr_drop(&h, inode);
	if (S_ISDIR(inode->i_mode) && !lanefs_dir_empty(inode))
		err = -EUCLEAN;
	if (!err) {
		lanefs_orphan(&h, inode, false);
		lanefs_inode_free(&h, inode);
	}
	if (err)
		lanefs_abort(LANEFS_SB(inode->i_sb));
	lanefs_handle_stop(&h);
	return err;
}

/**
 * lanefs_evict_inode() - end an inode in memory, and one without links on disk (evict_inode)
 * @inode: the inode
 *
 * What cannot be deleted stays an orphan for the next recovery, or is left to fsck.
 *
 * Context: Outside of handles, as it opens some; waits for the end of a freeze to delete.
 */
void lanefs_evict_inode(struct inode *inode)
{
	struct lanefs_inode *li = LANEFS_I(inode);

	truncate_inode_pages_final(&inode->i_data);
	lanefs_delalloc_evict(inode);
	if (!inode->i_nlink && !is_bad_inode(inode) && li->li_buf && !sb_rdonly(inode->i_sb)) {
		sb_start_intwrite(inode->i_sb);
		lanefs_inode_delete(inode);
		sb_end_intwrite(inode->i_sb);
	}
	clear_inode(inode);
	lanefs_buf_put(li->li_buf);
	li->li_buf = NULL;
	lanefs_icache_evict(inode);
}
