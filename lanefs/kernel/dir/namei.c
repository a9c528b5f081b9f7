// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations on names. Each is one handle on all domains that it touches: those of the directories
 * and those of the inodes. Blocks are reserved before anything is changed; what fails after that
 * is damage, and aborts.
 */
#include "dir/dir.h"

static struct dentry *lanefs_lookup(struct inode *dir, struct dentry *dentry, unsigned int flags)
{
	struct inode *inode = NULL;
	u64 key, ino;
	int err;

	if (dentry->d_name.len > LANEFS_NAME_MAX)
		return ERR_PTR(-ENAMETOOLONG);
	err = lanefs_dir_find(dir, dentry->d_name.name, dentry->d_name.len, &key, &ino);
	if (!err && lanefs_ino_index(ino) < LANEFS_FIRST_INDEX) {
		lanefs_error(LANEFS_SB(dir->i_sb), "directory %llu names the reserved inode %llu",
			     lanefs_number(dir), ino);
		return ERR_PTR(-EUCLEAN);
	}
	if (!err) {
		inode = lanefs_iget(dir->i_sb, ino);
		if (!IS_ERR(inode) && !inode->i_nlink) {
			lanefs_error(LANEFS_SB(dir->i_sb), "inode %llu has a name but no links",
				     ino);
			iput(inode);
			inode = ERR_PTR(-EUCLEAN);
		}
	} else if (err != -ENOENT) {
		return ERR_PTR(err);
	}
	return d_splice_alias(inode, dentry);
}

/*
 * After -ENOSPC: whether it was the domain chosen for the object that others filled meanwhile, and
 * not the directory's. Then another one is tried.
 */
static bool lanefs_retry_elsewhere(struct inode *dir, u32 *attempts)
{
	return ++*attempts < LANEFS_SB(dir->i_sb)->s_domains &&
	       lanefs_has_room(lanefs_domain_of(dir), lanefs_tree_blocks_needed(dir),
			       LANEFS_FOR_METADATA);
}

/* For a name of the directory that comes or goes, of an inode in that domain. */
static unsigned int lanefs_name_credits(const struct inode *dir, u32 domain)
{
	/* The inode's domain has a remote entry for the name, in a tree of its own. */
	if (LANEFS_I(dir)->li_domain != domain)
		return LANEFS_CREDITS;
	return lanefs_tree_credits(dir) + LANEFS_CREDITS_INODE;
}

/* One attempt to create an object, in the domain that is best now. */
static int lanefs_create_in(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
			    umode_t mode, dev_t rdev, const char *target,
			    const struct lanefs_acls *acls)
{
	struct lanefs_sb *sbi = LANEFS_SB(dir->i_sb);
	u32 domains[2] = { LANEFS_I(dir)->li_domain, lanefs_choose_domain(dir) };
	struct lanefs_handle h;
	struct inode *inode;
	int err;

	err = lanefs_handle_start(&h, sbi, lanefs_name_credits(dir, domains[1]), domains, 2);
	if (err)
		return err;
	err = lanefs_reserve_name(&h, dir);
	if (!err)
		err = lanefs_reserve(&h, sbi->s_domain[domains[1]], 1 + LANEFS_MAX_LEVEL + 2,
				     LANEFS_FOR_METADATA);
	if (err)
		goto out;
	inode = lanefs_inode_new(&h, idmap, dir, domains[1], mode, rdev);
	err = PTR_ERR_OR_ZERO(inode);
	if (err)
		goto out;
	err = lanefs_acls_init(&h, inode, acls);
	if (!err)
		err = lanefs_xattr_init_security(&h, inode, dir, &dentry->d_name);
	if (!err && target)
		err = lanefs_symlink_store(&h, inode, target, strlen(target));
	if (!err)
		err = lanefs_add_name(&h, dir, dentry, inode);
	if (err) {
		lanefs_undo_create(&h, inode);
		lanefs_handle_stop(&h);
		discard_new_inode(inode);
		return err;
	}
	lanefs_inode_journal(&h, inode, true);
	if (S_ISDIR(mode))
		lanefs_set_links(dir, dir->i_nlink + 1);
	lanefs_touch_dir(&h, dir);
	lanefs_handle_stop(&h);
	d_instantiate_new(dentry, inode);
	return 0;
out:
	lanefs_handle_stop(&h);
	return err;
}

static int lanefs_create_object(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
				umode_t mode, dev_t rdev, const char *target)
{
	struct lanefs_acls acls;
	int err, retries = 0;
	u32 attempts = 0;

	err = lanefs_acls_prepare(dir, &mode, &acls);
	if (err)
		return err;
	do {
		err = lanefs_create_in(idmap, dir, dentry, mode, rdev, target, &acls);
	} while (err == -ENOSPC && (lanefs_retry_elsewhere(dir, &attempts) ||
				    lanefs_retry_alloc(LANEFS_SB(dir->i_sb), true, &retries)));
	lanefs_acls_release(&acls);
	return err ?: lanefs_dirsync(dir);
}

static int lanefs_create(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
			 umode_t mode LANEFS_CREATE_EXCL)
{
	return lanefs_create_object(idmap, dir, dentry, mode | S_IFREG, 0, NULL);
}

static lanefs_mkdir_result lanefs_mkdir(struct mnt_idmap *idmap, struct inode *dir,
					struct dentry *dentry, umode_t mode)
{
	int err = lanefs_create_object(idmap, dir, dentry, mode | S_IFDIR, 0, NULL);

	return lanefs_mkdir_returns(err);
}

static int lanefs_mknod(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
			umode_t mode, dev_t rdev)
{
	return lanefs_create_object(idmap, dir, dentry, mode, rdev, NULL);
}

static int lanefs_symlink(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
			  const char *target)
{
	if (strlen(target) > LANEFS_SYMLINK_MAX)
		return -ENAMETOOLONG;
	return lanefs_create_object(idmap, dir, dentry, S_IFLNK | 0777, 0, target);
}

/* One attempt to create a file without a name. */
static struct inode *lanefs_tmpfile_in(struct mnt_idmap *idmap, struct inode *dir, umode_t mode,
				       const struct lanefs_acls *acls)
{
	struct lanefs_sb *sbi = LANEFS_SB(dir->i_sb);
	u32 domain = lanefs_choose_domain(dir);
	struct lanefs_handle h;
	struct inode *inode;
	int err;

	err = lanefs_handle_start(&h, sbi, LANEFS_CREDITS, &domain, 1);
	if (err)
		return ERR_PTR(err);
	inode = lanefs_inode_new(&h, idmap, dir, domain, mode, 0);
	if (IS_ERR(inode))
		goto out;
	err = lanefs_acls_init(&h, inode, acls);
	if (!err)
		err = lanefs_xattr_init_security(&h, inode, dir, NULL);
	if (err) {
		lanefs_undo_create(&h, inode);
		lanefs_handle_stop(&h);
		discard_new_inode(inode);
		return ERR_PTR(err);
	}
	lanefs_set_links(inode, 0);
	lanefs_orphan(&h, inode, true);
	lanefs_inode_journal(&h, inode, true);
out:
	lanefs_handle_stop(&h);
	return inode;
}

static int lanefs_tmpfile(struct mnt_idmap *idmap, struct inode *dir, struct file *file,
			  umode_t mode)
{
	struct lanefs_acls acls;
	struct inode *inode;
	int err, retries = 0;
	u32 attempts = 0;

	err = lanefs_acls_prepare(dir, &mode, &acls);
	if (err)
		return finish_open_simple(file, err);
	do {
		inode = lanefs_tmpfile_in(idmap, dir, mode, &acls);
	} while (PTR_ERR_OR_ZERO(inode) == -ENOSPC &&
		 (lanefs_retry_elsewhere(dir, &attempts) ||
		  lanefs_retry_alloc(LANEFS_SB(dir->i_sb), true, &retries)));
	lanefs_acls_release(&acls);
	if (!IS_ERR(inode)) {
		/* d_tmpfile() takes a link off, which the superblock counts. */
		lanefs_set_links(inode, 1);
		d_tmpfile(file, inode);
		set_nlink(inode, 1);
		lanefs_set_links(inode, 0);
		unlock_new_inode(inode);
	}
	return finish_open_simple(file, PTR_ERR_OR_ZERO(inode));
}

static int lanefs_link_once(struct inode *inode, struct inode *dir, struct dentry *dentry)
{
	struct lanefs_sb *sbi = LANEFS_SB(dir->i_sb);
	u32 domains[2] = { LANEFS_I(dir)->li_domain, LANEFS_I(inode)->li_domain };
	struct lanefs_handle h;
	int err;

	err = lanefs_handle_start(&h, sbi, lanefs_name_credits(dir, domains[1]), domains, 2);
	if (err)
		return err;
	err = lanefs_reserve_name(&h, dir);
	if (!err)
		err = lanefs_reserve(&h, lanefs_domain_of(inode), LANEFS_MAX_LEVEL + 2,
				     LANEFS_FOR_METADATA);
	if (!err)
		err = lanefs_add_name(&h, dir, dentry, inode);
	if (!err) {
		/* Without a link it was made by O_TMPFILE. */
		if (!inode->i_nlink)
			lanefs_orphan(&h, inode, false);
		lanefs_touch_ctime(inode);
		lanefs_set_links(inode, inode->i_nlink + 1);
		lanefs_inode_journal(&h, inode, true);
		lanefs_touch_dir(&h, dir);
	}
	lanefs_handle_stop(&h);
	return err;
}

static int lanefs_link(struct dentry *old, struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode(old);
	int err, retries = 0;

	do {
		err = lanefs_link_once(inode, dir, dentry);
	} while (err == -ENOSPC && lanefs_retry_alloc(LANEFS_SB(dir->i_sb), true, &retries));
	if (!err) {
		ihold(inode);
		d_instantiate(dentry, inode);
	}
	return err ?: lanefs_dirsync(dir);
}

static int lanefs_remove_name(struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode(dentry);
	struct lanefs_sb *sbi = LANEFS_SB(dir->i_sb);
	u32 domains[2] = { LANEFS_I(dir)->li_domain, LANEFS_I(inode)->li_domain };
	struct lanefs_handle h;
	u64 key, ino;
	int err;

	err = lanefs_dir_find(dir, dentry->d_name.name, dentry->d_name.len, &key, &ino);
	if (!err)
		err = lanefs_handle_start(&h, sbi, lanefs_name_credits(dir, domains[1]), domains, 2);
	if (err)
		return err;
	err = lanefs_dir_remove(&h, dir, key);
	if (!err)
		err = lanefs_span_remove(&h, dir, &dentry->d_name, inode);
	if (!err)
		err = lanefs_lose_link(&h, inode);
	if (!err && S_ISDIR(inode->i_mode))
		err = lanefs_lose_subdir(dir);
	lanefs_touch_dir(&h, dir);
	if (err)
		lanefs_abort(sbi);
	lanefs_handle_stop(&h);
	return err;
}

static int lanefs_unlink(struct inode *dir, struct dentry *dentry)
{
	return lanefs_remove_name(dir, dentry) ?: lanefs_dirsync(dir);
}

static int lanefs_rmdir(struct inode *dir, struct dentry *dentry)
{
	if (!lanefs_dir_empty(d_inode(dentry)))
		return -ENOTEMPTY;
	return lanefs_remove_name(dir, dentry) ?: lanefs_dirsync(dir);
}

const struct inode_operations lanefs_dir_iops = {
	.lookup = lanefs_lookup,
	.create = lanefs_create,
	.link = lanefs_link,
	.unlink = lanefs_unlink,
	.symlink = lanefs_symlink,
	.mkdir = lanefs_mkdir,
	.rmdir = lanefs_rmdir,
	.mknod = lanefs_mknod,
	.rename = lanefs_rename,
	.tmpfile = lanefs_tmpfile,
	.setattr = lanefs_setattr,
	.getattr = lanefs_getattr,
	.listxattr = lanefs_listxattr,
	.fileattr_get = lanefs_fileattr_get,
	.fileattr_set = lanefs_fileattr_set,
	LANEFS_ACL_OPS,
};

const struct inode_operations lanefs_special_iops = {
	.setattr = lanefs_setattr,
	.getattr = lanefs_getattr,
	.listxattr = lanefs_listxattr,
	.fileattr_get = lanefs_fileattr_get,
	.fileattr_set = lanefs_fileattr_set,
	LANEFS_ACL_OPS,
};
