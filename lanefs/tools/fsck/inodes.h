/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_FSCK_INODES_H
#define LANEFS_FSCK_INODES_H

#include "check.h"

/* Parts of stage 1. `write` becomes true when the inode was changed and is to be written. */

#define NUMBER(field)                                                                          \
	((u64)(sizeof(field) == 8 ? le64_to_cpu(field) :                                      \
	       sizeof(field) == 4 ? le32_to_cpu(field) : le16_to_cpu(field)))

/* A field with only one right value. */
#define FIELD(right, field, what)                                                             \
	do {                                                                                  \
		__typeof__((field)) right_ = (__typeof__((field)))(right);                    \
		if ((field) != right_ &&                                                      \
		    can_repair(&c->report, "inode %llu: %s is %llu, not %llu", ino, what,       \
			     NUMBER(field), NUMBER(right_))) {                                \
			(field) = right_;                                                     \
			*write = true;                                                        \
		}                                                                             \
	} while (0)

/* files.c */
bool claim(struct check *c, u64 block);
void unclaim(struct check *c, u64 block);
bool claim_block(struct walk *walk, u64 block);
void check_size(struct check *c, u64 ino, struct lanefs_dinode *inode, u64 right, bool *write);
/* @right: the blocks of data, tree and target. */
void check_blocks(struct check *c, u64 ino, struct lanefs_dinode *inode, u64 right, bool *write);
/* The first pass of a file, and the second. */
void check_file_tree(struct check *c, u64 ino, struct lanefs_dinode *inode, bool *write);
void check_file_data(struct check *c, u64 ino, struct lanefs_dinode *inode, bool *write);

/* owners.c: nothing to do where the file system is no log */
void check_owners_blocks(struct check *c);
/* Whether the blocks of a sound map have the owners that it says. */
void check_owners(struct check *c, u64 ino, const struct lanefs_extent *extents, size_t count);
/* Gives them these. */
void renew_owners(struct check *c, u64 ino, const struct lanefs_extent *extents, size_t count);

/* xattrs.c: drops the block of extended attributes if it is damaged. */
void check_xattrs(struct check *c, u64 ino, struct lanefs_dinode *inode, bool *write);

#endif
