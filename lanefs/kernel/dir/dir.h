/* SPDX-License-Identifier: GPL-2.0-only */
/* Directories, and the operations on names. */
#ifndef LANEFS_DIR_H
#define LANEFS_DIR_H

#include "file/file.h"

/* dir.c */
int lanefs_dir_find(struct inode *dir, const void *name, unsigned int length, u64 *key, u64 *ino);
int lanefs_dir_add(struct lanefs_handle *h, struct inode *dir, const void *name,
		   unsigned int length, u64 ino, umode_t mode);
int lanefs_dir_remove(struct lanefs_handle *h, struct inode *dir, u64 key);
int lanefs_dir_replace(struct lanefs_handle *h, struct inode *dir, u64 key, u64 ino, umode_t mode);
extern const struct file_operations lanefs_dir_fops;

/* span.c */
int lanefs_span_start(struct lanefs_sb *sbi);
void lanefs_span_stop(struct lanefs_sb *sbi);
int lanefs_span_add(struct lanefs_handle *h, const struct inode *dir, const struct qstr *name,
		    const struct inode *inode);
int lanefs_span_remove(struct lanefs_handle *h, const struct inode *dir, const struct qstr *name,
		       const struct inode *inode);

/* names.c */
int lanefs_dirsync(struct inode *dir);
void lanefs_touch_dir(struct lanefs_handle *h, struct inode *dir);
int lanefs_reserve_name(struct lanefs_handle *h, struct inode *dir);
void lanefs_undo_create(struct lanefs_handle *h, struct inode *inode);
int lanefs_add_name(struct lanefs_handle *h, struct inode *dir, struct dentry *dentry,
		    struct inode *inode);
int lanefs_lose_subdir(struct inode *dir);
int lanefs_lose_link(struct lanefs_handle *h, struct inode *inode);

/* namei.c */
extern const struct inode_operations lanefs_dir_iops;
extern const struct inode_operations lanefs_special_iops;

/* rename.c */
int lanefs_rename(struct mnt_idmap *idmap, struct inode *old_dir, struct dentry *old_dentry,
		  struct inode *new_dir, struct dentry *new_dentry, unsigned int flags);

#endif
