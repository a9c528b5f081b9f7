// SPDX-License-Identifier: GPL-2.0-only
/* Inodes between memory and the inode table (table.c): found, read in, checked, created. */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/writeback.h>

#include "core/extents.h"
#include "core/flags.h"
#include "inode/inode.h"

static bool lanefs_root_sound(const struct lanefs_dinode *di, umode_t mode)
{
	unsigned int level = le16_to_cpu(di->di_level), count = le16_to_cpu(di->di_count), i;
	const struct lanefs_index *index = (const void *)di->di_root;

	if (count > LANEFS_ROOT_RECORDS || level > LANEFS_MAX_LEVEL)
		return false;
	if (S_ISLNK(mode)) {
		u64 size = le64_to_cpu(di->di_size);

		if (!size || size > LANEFS_SYMLINK_MAX || level > 1 || count != level)
			return false;
		return !level == (size <= LANEFS_INLINE_SYMLINK) &&
		       (level || strnlen(di->di_root, LANEFS_ROOT_SIZE) == size);
	}
	if (S_ISDIR(mode) && !level)
		return !count;
	if (S_ISREG(mode) && !level)
		return lanefs_extents_valid((const void *)di->di_root, count);
	if (!S_ISDIR(mode) && !S_ISREG(mode))
		return !level && !count;
	if (!count)
		return false;
	for (i = 1; i < count; i++)
		if (le64_to_cpu(index[i - 1].ix_key) >= le64_to_cpu(index[i].ix_key))
			return false;
	return true;
}

static bool lanefs_shift_sound(const struct lanefs_dinode *di, umode_t mode)
{
	u64 at = le32_to_cpu(di->di_shift_at), by = le32_to_cpu(di->di_shift_by);

	if (!by)
		return !at;
	return S_ISREG(mode) && at + by <= LANEFS_MAX_FILE_BLOCKS &&
	       le64_to_cpu(di->di_size) > by << LANEFS_BLOCK_SHIFT;
}

static bool lanefs_dinode_sound(const struct lanefs_domain *domain, const struct lanefs_dinode *di,
				u64 ino)
{
	u64 xattr = le64_to_cpu(di->di_xattr);
	umode_t mode = le16_to_cpu(di->di_mode);

	if (le64_to_cpu(di->di_ino) != ino || le64_to_cpu(di->di_size) > MAX_LFS_FILESIZE)
		return false;
	if (le32_to_cpu(di->di_nlink) > LANEFS_LINK_MAX ||
	    le64_to_cpu(di->di_blocks) > U64_MAX >> LANEFS_BLOCK_SHIFT)
		return false;
	if (xattr && (xattr < domain->d_layout.data || xattr >= domain->d_layout.end))
		return false;
	if (!S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode) && !S_ISCHR(mode) &&
	    !S_ISBLK(mode) && !S_ISFIFO(mode) && !S_ISSOCK(mode))
		return false;
	if (le32_to_cpu(di->di_flags) & ~lanefs_flags_for(mode))
		return false;
	if (!lanefs_shift_sound(di, mode))
		return false;
	return lanefs_root_sound(di, mode);
}

static struct timespec64 lanefs_dinode_time(__le64 seconds, __le32 ns)
{
	return (struct timespec64){ (s64)le64_to_cpu(seconds),
				    min_t(u32, le32_to_cpu(ns), NSEC_PER_SEC - 1) };
}

static void lanefs_inode_fill(struct inode *inode, const struct lanefs_dinode *di)
{
	struct lanefs_inode *li = LANEFS_I(inode);

	inode->i_mode = le16_to_cpu(di->di_mode);
	i_uid_write(inode, le32_to_cpu(di->di_uid));
	i_gid_write(inode, le32_to_cpu(di->di_gid));
	lanefs_set_links(inode, le32_to_cpu(di->di_nlink));
	li->li_shift_at = le32_to_cpu(di->di_shift_at);
	li->li_shift_by = le32_to_cpu(di->di_shift_by);
	i_size_write(inode, le64_to_cpu(di->di_size) -
			    ((u64)li->li_shift_by << LANEFS_BLOCK_SHIFT));
	lanefs_set_atime(inode, lanefs_dinode_time(di->di_atime, di->di_atime_ns));
	lanefs_set_mtime(inode, lanefs_dinode_time(di->di_mtime, di->di_mtime_ns));
	lanefs_set_ctime(inode, lanefs_dinode_time(di->di_ctime, di->di_ctime_ns));
	li->li_btime = lanefs_dinode_time(di->di_btime, di->di_btime_ns);
	inode->i_generation = le32_to_cpu(di->di_generation);
	inode->i_rdev = new_decode_dev(le32_to_cpu(di->di_rdev));
	lanefs_set_flags(inode, le32_to_cpu(di->di_flags));
	li->li_disk_size = le64_to_cpu(di->di_size);
	li->li_parent = le64_to_cpu(di->di_parent);
	li->li_xattr = le64_to_cpu(di->di_xattr);
	if (!li->li_xattr)
		cache_no_acl(inode);
	li->li_level = le16_to_cpu(di->di_level);
	li->li_count = le16_to_cpu(di->di_count);
	memcpy(li->li_root, di->di_root, LANEFS_ROOT_SIZE);
	lanefs_add_blocks(inode, le64_to_cpu(di->di_blocks));
}

static int lanefs_inode_read(struct inode *inode, u64 ino)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_sb *sbi = LANEFS_SB(inode->i_sb);
	struct lanefs_domain *domain = sbi->s_domain[lanefs_ino_domain(ino)];
	struct lanefs_dinode di;
	struct lanefs_buf *buf;

	buf = lanefs_dinode_read(domain, ino, &di);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	li->li_buf = buf;
	li->li_domain = domain->d_id;
	if (!lanefs_dinode_sound(domain, &di, ino)) {
		lanefs_error(sbi, "inode %llu is damaged", ino);
		return -EUCLEAN;
	}
	lanefs_inode_fill(inode, &di);
	/* All earlier changes are on disk. */
	li->li_seq = READ_ONCE(domain->d_journal->j_next_seq) - 1;
	li->li_data_seq = li->li_seq;
	return 0;
}

static struct inode *lanefs_iget_known(struct super_block *sb, u64 ino, s64 generation)
{
	struct inode *inode = lanefs_icache_get(sb, ino, generation);
	int err;

	if (IS_ERR(inode))
		return inode;
	if (!(lanefs_inode_state(inode) & I_NEW))
		return inode;
	err = lanefs_inode_read(inode, ino);
	if (err) {
		lanefs_icache_forget(inode);
		iget_failed(inode);
		return ERR_PTR(err);
	}
	LANEFS_SB(inode->i_sb)->s_set_ops(inode);
	unlock_new_inode(inode);
	return inode;
}

/**
 * lanefs_iget() - get an inode that has a name
 * @sb: the file system
 * @ino: its number
 *
 * Context: Outside of handles.
 * Return: the inode, with a reference, or an ERR_PTR: -EUCLEAN: no inode in use has that number,
 * or it is damaged.
 */
struct inode *lanefs_iget(struct super_block *sb, u64 ino)
{
	if (!lanefs_ino_used(LANEFS_SB(sb), ino)) {
		lanefs_error(LANEFS_SB(sb), "inode number %llu is out of range", ino);
		return ERR_PTR(-EUCLEAN);
	}
	return lanefs_iget_known(sb, ino, LANEFS_GENERATION_NAMED);
}

/**
 * lanefs_iget_outside() - get an inode of a number that somebody else remembers
 * @sb: the file system
 * @ino: its number
 * @generation: its generation, or LANEFS_GENERATION_ANY
 *
 * One that lost its last name is found as long as it is open.
 *
 * Context: Outside of handles.
 * Return: the inode, with a reference, or an ERR_PTR: -ESTALE: it is not in use, not any more, or
 * not for others to see.
 */
struct inode *lanefs_iget_outside(struct super_block *sb, u64 ino, s64 generation)
{
	struct inode *inode;

	if (ino != LANEFS_ROOT_INO && lanefs_ino_index(ino) < LANEFS_FIRST_INDEX)
		return ERR_PTR(-ESTALE);
	if (!lanefs_ino_used(LANEFS_SB(sb), ino))
		return ERR_PTR(-ESTALE);
	inode = lanefs_iget_known(sb, ino, generation);
	if (IS_ERR(inode) || generation == LANEFS_GENERATION_ANY ||
	    generation == inode->i_generation)
		return inode;
	iput(inode);
	return ERR_PTR(-ESTALE);
}

/**
 * lanefs_inode_new() - make an inode, with one link (a directory: two)
 * @h: the handle
 * @idmap: of the mount
 * @dir: its directory
 * @domain: its domain
 * @mode: its type and mode
 * @rdev: its device, if it is one
 *
 * The caller journals it when it is complete.
 *
 * Context: In a handle of the domain.
 * Return: the inode, locked and hashed, or an ERR_PTR: -ENOSPC: the domain has none left.
 */
struct inode *lanefs_inode_new(struct lanefs_handle *h, struct mnt_idmap *idmap, struct inode *dir,
			       u32 domain, umode_t mode, dev_t rdev)
{
	struct super_block *sb = dir->i_sb;
	struct lanefs_sb *sbi = LANEFS_SB(sb);
	struct inode *inode = lanefs_icache_new(sb);
	struct lanefs_inode *li;
	u64 ino;
	int err;

	if (!inode)
		return ERR_PTR(-ENOMEM);
	li = LANEFS_I(inode);
	li->li_domain = domain;
	err = lanefs_inode_alloc(h, sbi->s_domain[domain], &ino, &li->li_buf);
	if (err) {
		li->li_buf = NULL;
		make_bad_inode(inode);
		iput(inode);
		return ERR_PTR(err);
	}
	inode->i_ino = ino;
	inode_init_owner(idmap, inode, dir, mode);
	cache_no_acl(inode);
	inode->i_rdev = rdev;
	inode->i_generation = get_random_u32();
	li->li_btime = lanefs_touch_ctime(inode);
	lanefs_set_atime(inode, li->li_btime);
	lanefs_set_mtime(inode, li->li_btime);
	lanefs_set_links(inode, S_ISDIR(mode) ? 2 : 1);
	lanefs_inherit_flags(inode, dir);
	if (S_ISDIR(mode))
		li->li_parent = dir->i_ino;
	if (lanefs_icache_add(inode)) {
		/* Only if the bitmap had lost it. */
		lanefs_error(sbi, "inode %llu is allocated twice", ino);
		make_bad_inode(inode);
		iput(inode);
		return ERR_PTR(-EUCLEAN);
	}
	LANEFS_SB(inode->i_sb)->s_set_ops(inode);
	return inode;
}

/*
 * The file's blocks with those that wait to be written, and are being written: rather too many than
 * none, as some take a file without blocks for one without data. Where there seem to be none, they
 * may just be on their way from one count to another.
 */
static u64 lanefs_blocks_of(struct inode *inode)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	u64 waiting = READ_ONCE(li->li_delayed_blocks) + READ_ONCE(li->li_rewritten);
	u64 blocks = READ_ONCE(li->li_blocks) + waiting;

	if (blocks || !S_ISREG(inode->i_mode) || !i_size_read(inode))
		return blocks;
	down_read(&li->li_tree_sem);
	blocks = li->li_blocks + li->li_delayed_blocks + li->li_rewritten;
	up_read(&li->li_tree_sem);
	return blocks;
}

/**
 * lanefs_getattr() - tell the attributes of an inode (getattr)
 * @idmap: of the mount
 * @path: to the inode
 * @stat: gets them
 * @mask: of STATX_*, those that are asked for
 * @flags: of AT_STATX_*; all are served alike
 *
 * Context: Takes li_tree_sem where a file with data seems to have no blocks; outside of handles.
 * Return: 0.
 */
int lanefs_getattr(struct mnt_idmap *idmap, const struct path *path, struct kstat *stat, u32 mask,
		   unsigned int flags)
{
	struct inode *inode = d_inode(path->dentry);
	const struct lanefs_inode *li = LANEFS_I(inode);

	lanefs_fillattr(idmap, mask, inode, stat);
	lanefs_fill_attributes(inode, stat);
	stat->blocks = lanefs_blocks_of(inode) << LANEFS_SECTOR_SHIFT;
	if (mask & STATX_BTIME) {
		stat->btime = li->li_btime;
		stat->result_mask |= STATX_BTIME;
	}
	/* To and from a log direct I/O is not direct. */
	if ((mask & STATX_DIOALIGN) && S_ISREG(inode->i_mode) && !lanefs_is_log(inode->i_sb)) {
		stat->dio_mem_align = bdev_dma_alignment(inode->i_sb->s_bdev) + 1;
		stat->dio_offset_align = bdev_logical_block_size(inode->i_sb->s_bdev);
		stat->result_mask |= STATX_DIOALIGN;
	}
	return 0;
}

/**
 * lanefs_setattr_prepare() - check a change of attributes
 * @idmap: of the mount
 * @dentry: of the inode
 * @attr: the change
 *
 * As setattr_prepare(), which leaves to the file system what an open file allows.
 *
 * Context: With i_rwsem.
 * Return: 0, -EPERM: the inode is immutable, or the error of setattr_prepare().
 */
int lanefs_setattr_prepare(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	if (IS_IMMUTABLE(d_inode(dentry)))
		return -EPERM;
	return setattr_prepare(idmap, dentry, attr);
}

/**
 * lanefs_setattr() - change attributes other than the size (setattr)
 * @idmap: of the mount
 * @dentry: of the inode
 * @attr: the change
 *
 * Context: With i_rwsem, outside of handles.
 * Return: 0, the error of lanefs_setattr_prepare(), -EROFS, or that of changing the ACL after the
 * mode, which stays changed.
 */
int lanefs_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	struct lanefs_handle h;
	int err;

	err = lanefs_setattr_prepare(idmap, dentry, attr);
	if (err)
		return err;
	err = lanefs_handle_start_inode(&h, inode);
	if (err)
		return err;
	setattr_copy(idmap, inode, attr);
	lanefs_inode_journal(&h, inode, attr->ia_valid & ~(ATTR_ATIME | ATTR_MTIME | ATTR_CTIME |
							   ATTR_ATIME_SET | ATTR_MTIME_SET));
	lanefs_handle_stop(&h);
	if ((attr->ia_valid & ATTR_MODE) && !S_ISLNK(inode->i_mode))
		err = lanefs_acl_chmod(idmap, dentry, inode->i_mode);
	return err;
}
