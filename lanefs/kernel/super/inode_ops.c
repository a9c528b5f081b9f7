// SPDX-License-Identifier: GPL-2.0-only
/*
 * The operations of an inode by its type: inode/ calls this by s_set_ops, as it knows none of them.
 */
#include "super/super.h"

void lanefs_set_ops(struct inode *inode)
{
	switch (inode->i_mode & S_IFMT) {
	case S_IFREG:
		inode->i_op = &lanefs_file_iops;
		inode->i_fop = &lanefs_file_fops;
		inode->i_mapping->a_ops = &lanefs_aops;
		INIT_WORK(&LANEFS_I(inode)->li_io_work, lanefs_io_work);
		break;
	case S_IFDIR:
		inode->i_op = &lanefs_dir_iops;
		inode->i_fop = &lanefs_dir_fops;
		break;
	case S_IFLNK:
		inode->i_op = &lanefs_symlink_iops;
		break;
	default:
		inode->i_op = &lanefs_special_iops;
		init_special_inode(inode, inode->i_mode, inode->i_rdev);
	}
}
