/* SPDX-License-Identifier: GPL-2.0-only */
/* Mounts: options, the steps between read-only and read-write, statistics. */
#ifndef LANEFS_SUPER_H
#define LANEFS_SUPER_H

#include "dir/dir.h"

/* options.c */
extern const struct fs_parameter_spec lanefs_parameters[];
int lanefs_parse_param(struct fs_context *fc, struct fs_parameter *param);
int lanefs_show_options(struct seq_file *seq, struct dentry *root);
bool lanefs_remount_read_only(const struct super_block *sb, const struct fs_context *fc);
int lanefs_check_features(struct super_block *sb, const struct lanefs_options *asked,
			  struct fs_context *fc);
int lanefs_check_options(struct super_block *sb, const struct lanefs_options *asked,
			 const struct lanefs_options *now, struct fs_context *fc);
void lanefs_take_options(struct lanefs_options *now, const struct lanefs_options *asked);

/* state.c */
int lanefs_read_super(struct lanefs_sb *sbi, struct fs_context *fc);
int lanefs_new_epoch(struct lanefs_sb *sbi, u32 state);
int lanefs_set_writable(struct lanefs_sb *sbi);
int lanefs_checkpoint_all(struct lanefs_sb *sbi);
int lanefs_set_read_only(struct lanefs_sb *sbi);

/* inode_ops.c */
void lanefs_set_ops(struct inode *inode);

/* sysfs.c */
int lanefs_sysfs_init(void);
void lanefs_sysfs_exit(void);
int lanefs_sysfs_start(struct lanefs_sb *sbi);
void lanefs_sysfs_stop(struct lanefs_sb *sbi);

#endif
