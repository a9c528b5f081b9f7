// SPDX-License-Identifier: GPL-2.0-only
/* ioctls of any file or directory that are about the whole file system. */
#include <linux/blkdev.h>
#include <linux/mount.h>
#include <linux/uaccess.h>

#include "inode/inode.h"

/* As other file systems have it, and no header for all: with what is to be kept. */
#define LANEFS_IOC_SHUTDOWN	_IOR('X', 125, __u32)

enum {
	LANEFS_SHUTDOWN_SYNC,	/* everything */
	LANEFS_SHUTDOWN_JOURNAL,	/* what operations have changed, but no data */
	LANEFS_SHUTDOWN_NOW,	/* what is on the device */
};

static int lanefs_shutdown_keeping(struct lanefs_sb *sbi, u32 keep)
{
	struct super_block *sb = sbi->s_vfs;
	int err = 0;

	if (keep > LANEFS_SHUTDOWN_NOW)
		return -EINVAL;
	if (keep == LANEFS_SHUTDOWN_SYNC) {
		err = lanefs_bdev_freeze(sb->s_bdev);
		if (!err)
			err = lanefs_bdev_thaw(sb->s_bdev);
	} else if (keep == LANEFS_SHUTDOWN_JOURNAL && READ_ONCE(sbi->s_started)) {
		err = lanefs_stabilise_all(sbi);
	}
	/* After an abort there is nothing left to be kept. */
	if (err && !READ_ONCE(sbi->s_aborted))
		return err;
	pr_notice("lanefs (%s): shut down by ioctl\n", sb->s_id);
	lanefs_shutdown(sbi);
	return 0;
}

static int lanefs_ioctl_shutdown(struct lanefs_sb *sbi, __u32 __user *argument)
{
	u32 keep;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (get_user(keep, argument))
		return -EFAULT;
	return lanefs_shutdown_keeping(sbi, keep);
}

static int lanefs_ioctl_get_label(struct lanefs_sb *sbi, char __user *argument)
{
	char label[FSLABEL_MAX] = {};

	lanefs_get_label(sbi, label);
	return copy_to_user(argument, label, sizeof(label)) ? -EFAULT : 0;
}

static int lanefs_ioctl_set_label(struct file *file, const char __user *argument)
{
	char label[LANEFS_LABEL_MAX + 1];
	size_t length;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (copy_from_user(label, argument, sizeof(label)))
		return -EFAULT;
	length = strnlen(label, sizeof(label));
	if (length > LANEFS_LABEL_MAX)
		return -EINVAL;
	memset(label + length, 0, sizeof(label) - length);
	err = mnt_want_write_file(file);
	if (err)
		return err;
	err = lanefs_set_label(LANEFS_SB(file_inode(file)->i_sb), label);
	mnt_drop_write_file(file);
	return err;
}

/**
 * lanefs_ioctl() - serve FITRIM, labels, the generation and shutdown (unlocked_ioctl)
 * @file: any of the file system
 * @command: which one
 * @argument: in user memory
 *
 * Context: Outside of handles, without the inode's lock.
 * Return: 0, -ENOTTY: another command, -EPERM, -EFAULT, -EINVAL, or the error of what it does.
 */
long lanefs_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct lanefs_sb *sbi = LANEFS_SB(file_inode(file)->i_sb);

	switch (command) {
	case FITRIM:
		return lanefs_ioctl_trim(file, (void __user *)argument);
	case FS_IOC_GETVERSION:
	case FS_IOC32_GETVERSION:
		return put_user(file_inode(file)->i_generation, (int __user *)argument);
	case FS_IOC_GETFSLABEL:
		return lanefs_ioctl_get_label(sbi, (void __user *)argument);
	case FS_IOC_SETFSLABEL:
		return lanefs_ioctl_set_label(file, (void __user *)argument);
	case LANEFS_IOC_SHUTDOWN:
		return lanefs_ioctl_shutdown(sbi, (void __user *)argument);
	default:
		return -ENOTTY;
	}
}
