// SPDX-License-Identifier: GPL-2.0-only
/*
 * The inode table. A change of an inode goes into its block there at once, in the handle of the
 * operation; so there is nothing to write back later.
 */
#include <linux/writeback.h>

#include "inode/inode.h"

static struct lanefs_dinode *lanefs_dinode_of(const struct lanefs_buf *buf, u64 ino)
{
	u32 slot;

	div_u64_rem(lanefs_ino_index(ino), LANEFS_INODES_PER_BLOCK, &slot);
	return (struct lanefs_dinode *)(buf->b_data + LANEFS_INODE_SIZE * (1 + slot));
}

/**
 * lanefs_handle_start_inode() - open a handle for a change of an inode alone, and not of its tree
 * @h: the handle
 * @inode: the inode
 *
 * Context: As lanefs_handle_start().
 * Return: 0 or -EROFS.
 */
int lanefs_handle_start_inode(struct lanefs_handle *h, const struct inode *inode)
{
	return lanefs_handle_start(h, LANEFS_SB(inode->i_sb), LANEFS_CREDITS_INODE,
				   &LANEFS_I(inode)->li_domain, 1);
}

/* Copies it as it is on disk. Its block of the table, which stays with the caller. */
struct lanefs_buf *lanefs_dinode_read(struct lanefs_domain *domain, u64 ino,
				      struct lanefs_dinode *di)
{
	struct lanefs_buf *buf;

	buf = lanefs_buf_read(domain->d_journal, domain->d_layout.itable +
			      div_u64(lanefs_ino_index(ino), LANEFS_INODES_PER_BLOCK),
			      LANEFS_MAGIC_ITABLE, domain->d_id);
	if (IS_ERR(buf))
		return buf;
	mutex_lock(&buf->b_mutex);
	*di = *lanefs_dinode_of(buf, ino);
	mutex_unlock(&buf->b_mutex);
	return buf;
}

bool lanefs_ino_used(const struct lanefs_sb *sbi, u64 ino)
{
	u64 index = lanefs_ino_index(ino);

	return lanefs_ino_domain(ino) < sbi->s_domains && index && index < sbi->s_domain_inodes &&
	       lanefs_inodes_used(sbi->s_domain[lanefs_ino_domain(ino)], index, index + 1) > 0;
}

/*
 * Whether an inode of that number and generation, with links, is in use; -ESTALE if not. As long as
 * the caller holds its shard's lock it is neither freed nor given out: what frees it clears it there.
 */
int lanefs_inode_confirm(struct lanefs_domain *domain, u64 ino, s64 generation)
{
	struct lanefs_dinode di;
	struct lanefs_buf *buf;

	/* The block of the table may never have been written. */
	if (!lanefs_ino_used(domain->d_sbi, ino))
		return -ESTALE;
	buf = lanefs_dinode_read(domain, ino, &di);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	lanefs_buf_put(buf);
	if (le64_to_cpu(di.di_ino) != ino || !di.di_nlink)
		return -ESTALE;
	return generation == LANEFS_GENERATION_ANY ||
	       generation == le32_to_cpu(di.di_generation) ? 0 : -ESTALE;
}

/**
 * lanefs_inode_journal() - put an inode as it is in memory into its block of the table
 * @h: the handle
 * @inode: the inode
 * @data: more than its times has changed, so fdatasync must write it
 *
 * It may catch another task's change half done; that one journals the inode again, in the same
 * transaction, before its handle ends.
 *
 * Context: In a handle of the inode's domain; takes b_mutex and li_journal_lock.
 */
void lanefs_inode_journal(struct lanefs_handle *h, struct inode *inode, bool data)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	/* A completion of I/O holds no lock under which the VFS changes them. */
	struct timespec64 atime = data_race(lanefs_get_atime(inode)),
			  mtime = data_race(lanefs_get_mtime(inode)),
			  ctime = data_race(lanefs_get_ctime(inode));
	struct lanefs_dinode *di;

	lanefs_buf_join(h, li->li_buf);
	di = lanefs_dinode_of(li->li_buf, inode->i_ino);
	spin_lock(&li->li_journal_lock);
	di->di_mode = cpu_to_le16(inode->i_mode);
	di->di_level = cpu_to_le16(li->li_level);
	di->di_count = cpu_to_le16(li->li_count);
	di->di_uid = cpu_to_le32(i_uid_read(inode));
	di->di_gid = cpu_to_le32(i_gid_read(inode));
	di->di_nlink = cpu_to_le32(inode->i_nlink);
	di->di_flags = cpu_to_le32(li->li_flags);
	di->di_size = cpu_to_le64(S_ISREG(inode->i_mode) ? li->li_disk_size : i_size_read(inode));
	di->di_blocks = cpu_to_le64(li->li_blocks);
	di->di_atime = cpu_to_le64(atime.tv_sec);
	di->di_mtime = cpu_to_le64(mtime.tv_sec);
	di->di_ctime = cpu_to_le64(ctime.tv_sec);
	di->di_btime = cpu_to_le64(li->li_btime.tv_sec);
	di->di_atime_ns = cpu_to_le32(atime.tv_nsec);
	di->di_mtime_ns = cpu_to_le32(mtime.tv_nsec);
	di->di_ctime_ns = cpu_to_le32(ctime.tv_nsec);
	di->di_btime_ns = cpu_to_le32(li->li_btime.tv_nsec);
	di->di_generation = cpu_to_le32(inode->i_generation);
	di->di_rdev = cpu_to_le32(new_encode_dev(inode->i_rdev));
	di->di_ino = cpu_to_le64(inode->i_ino);
	di->di_xattr = cpu_to_le64(li->li_xattr);
	di->di_parent = cpu_to_le64(li->li_parent);
	di->di_shift_at = cpu_to_le32(li->li_shift_at);
	di->di_shift_by = cpu_to_le32(li->li_shift_by);
	memcpy(di->di_root, li->li_root, LANEFS_ROOT_SIZE);
	WRITE_ONCE(li->li_seq, h->h_part[lanefs_handle_part(h, lanefs_journal_of(inode))].txn->t_seq);
	if (data)
		WRITE_ONCE(li->li_data_seq, li->li_seq);
	spin_unlock(&li->li_journal_lock);
}

/**
 * lanefs_dirty_inode() - journal an inode that the VFS has changed (dirty_inode)
 * @inode: the inode
 * @flags: of I_DIRTY_*; without I_DIRTY_DATASYNC only times have changed
 *
 * There is nobody to tell an error: where no handle is given out the change is lost.
 *
 * Context: As lanefs_handle_start().
 */
void lanefs_dirty_inode(struct inode *inode, int flags)
{
	struct lanefs_handle h;

	if (!(flags & (I_DIRTY_SYNC | I_DIRTY_DATASYNC)) || sb_rdonly(inode->i_sb))
		return;
	if (lanefs_handle_start_inode(&h, inode))
		return;
	lanefs_inode_journal(&h, inode, flags & I_DIRTY_DATASYNC);
	lanefs_handle_stop(&h);
}
