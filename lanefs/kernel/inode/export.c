// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handles of objects, for NFS and open_by_handle_at(): the inode's number with its generation, and
 * perhaps its directory's. A handle comes from outside, and long after what it is of may be gone.
 */
#include <linux/exportfs.h>

#include "inode/inode.h"

struct lanefs_fid {
	u64 ino;
	u32 generation;
	u64 parent;
	u32 parent_generation;
} __packed;

/* In words of 32 bits, as the kernel counts. */
#define LANEFS_FID_WORDS	(offsetof(struct lanefs_fid, parent) / sizeof(u32))
#define LANEFS_FID_PARENT_WORDS	(sizeof(struct lanefs_fid) / sizeof(u32))

static int lanefs_encode_fh(struct inode *inode, u32 *words, int *count, struct inode *parent)
{
	struct lanefs_fid *fid = (struct lanefs_fid *)words;
	int room = *count;

	*count = parent ? LANEFS_FID_PARENT_WORDS : LANEFS_FID_WORDS;
	if (room < *count)
		return FILEID_INVALID;
	fid->ino = inode->i_ino;
	fid->generation = inode->i_generation;
	if (!parent)
		return FILEID_INO64_GEN;
	fid->parent = parent->i_ino;
	fid->parent_generation = parent->i_generation;
	return FILEID_INO64_GEN_PARENT;
}

static struct dentry *lanefs_fh_to_dentry(struct super_block *sb, struct fid *words, int count,
					  int type)
{
	struct lanefs_fid *fid = (struct lanefs_fid *)words;

	if ((type != FILEID_INO64_GEN && type != FILEID_INO64_GEN_PARENT) ||
	    count < LANEFS_FID_WORDS)
		return NULL;
	return d_obtain_alias(lanefs_iget_outside(sb, fid->ino, fid->generation));
}

static struct dentry *lanefs_fh_to_parent(struct super_block *sb, struct fid *words, int count,
					  int type)
{
	struct lanefs_fid *fid = (struct lanefs_fid *)words;

	if (type != FILEID_INO64_GEN_PARENT || count < LANEFS_FID_PARENT_WORDS)
		return NULL;
	return d_obtain_alias(lanefs_iget_outside(sb, fid->parent, fid->parent_generation));
}

/* No lock keeps the directory from being moved or removed: the caller looks for its name there. */
static struct dentry *lanefs_get_parent(struct dentry *child)
{
	u64 parent = READ_ONCE(LANEFS_I(d_inode(child))->li_parent);

	return d_obtain_alias(lanefs_iget_outside(child->d_sb, parent, LANEFS_GENERATION_ANY));
}

static int lanefs_commit_metadata(struct inode *inode)
{
	return lanefs_make_durable(lanefs_journal_of(inode), READ_ONCE(LANEFS_I(inode)->li_seq));
}

const struct export_operations lanefs_export_ops = {
	.encode_fh = lanefs_encode_fh,
	.fh_to_dentry = lanefs_fh_to_dentry,
	.fh_to_parent = lanefs_fh_to_parent,
	.get_parent = lanefs_get_parent,
	.commit_metadata = lanefs_commit_metadata,
};
