// SPDX-License-Identifier: GPL-2.0-only
/* rename(2): one handle on all domains of both names, as the other operations have it (namei.c). */
#include "dir/dir.h"

/* One side of a rename: a name, and the inode that it has before. */
struct lanefs_side {
	struct inode *dir;
	struct dentry *dentry;
	struct inode *inode;
	u64 key;
};

static int lanefs_rename_find(struct lanefs_side *side)
{
	const struct qstr *name = &side->dentry->d_name;
	u64 ino;

	if (!side->inode)
		return 0;
	return lanefs_dir_find(side->dir, name->name, name->len, &side->key, &ino);
}

/* The name of `side` becomes one of `inode`; the inode that had it loses its remote entry. */
static int lanefs_rename_point(struct lanefs_handle *h, struct lanefs_side *side,
			       struct inode *inode)
{
	const struct qstr *name = &side->dentry->d_name;
	int err;

	if (!side->inode)
		return lanefs_add_name(h, side->dir, side->dentry, inode);
	err = lanefs_dir_replace(h, side->dir, side->key, inode->i_ino, inode->i_mode);
	if (!err)
		err = lanefs_span_remove(h, side->dir, name, side->inode);
	if (!err)
		err = lanefs_span_add(h, side->dir, name, inode);
	return err;
}

/* A directory has moved from one parent to another. */
static int lanefs_rename_parent(struct inode *inode, struct inode *from, struct inode *to)
{
	if (!S_ISDIR(inode->i_mode) || from == to)
		return 0;
	LANEFS_I(inode)->li_parent = to->i_ino;
	lanefs_set_links(to, to->i_nlink + 1);
	return lanefs_lose_subdir(from);
}

/* `whiteout`: the domain of an inode that takes the old name, or NULL. */
static int lanefs_rename_begin(struct lanefs_handle *h, const struct lanefs_side *from,
			       const struct lanefs_side *to, const u32 *whiteout)
{
	struct lanefs_sb *sbi = LANEFS_SB(from->dir->i_sb);
	u32 domains[LANEFS_HANDLE_PARTS] = { LANEFS_I(from->dir)->li_domain,
					     LANEFS_I(to->dir)->li_domain,
					     LANEFS_I(from->inode)->li_domain };
	int count = 3, err;

	if (to->inode)
		domains[count++] = LANEFS_I(to->inode)->li_domain;
	if (whiteout)
		domains[count++] = *whiteout;
	err = lanefs_handle_start(h, sbi, 3 * LANEFS_CREDITS, domains, count);
	if (err)
		return err;
	err = lanefs_reserve_name(h, to->dir);
	if (!err)
		err = lanefs_reserve(h, lanefs_domain_of(from->inode), LANEFS_MAX_LEVEL + 2,
				     LANEFS_FOR_METADATA);
	if (!err && to->inode)
		err = lanefs_reserve(h, lanefs_domain_of(to->inode), LANEFS_MAX_LEVEL + 2,
				     LANEFS_FOR_METADATA);
	if (!err && whiteout)
		err = lanefs_reserve(h, sbi->s_domain[*whiteout], LANEFS_MAX_LEVEL + 2,
				     LANEFS_FOR_METADATA);
	if (err)
		lanefs_handle_stop(h);
	return err;
}

static int lanefs_rename_done(struct lanefs_handle *h, struct lanefs_side *from,
			      struct lanefs_side *to, int err)
{
	lanefs_touch_ctime(from->inode);
	lanefs_inode_journal(h, from->inode, true);
	lanefs_touch_dir(h, from->dir);
	if (to->dir != from->dir)
		lanefs_touch_dir(h, to->dir);
	if (err)
		lanefs_abort(h->h_sbi);
	lanefs_handle_stop(h);
	return err;
}

/* The old name goes, or to a whiteout, and what had the new one has lost it. */
static int lanefs_rename_over(struct lanefs_handle *h, struct lanefs_side *from,
			      struct lanefs_side *to, struct inode *whiteout)
{
	int err;

	if (whiteout)
		err = lanefs_rename_point(h, from, whiteout);
	else
		err = lanefs_dir_remove(h, from->dir, from->key);
	if (!err && !whiteout)
		err = lanefs_span_remove(h, from->dir, &from->dentry->d_name, from->inode);
	if (!err && to->inode) {
		err = lanefs_lose_link(h, to->inode);
		if (!err && S_ISDIR(to->inode->i_mode))
			err = lanefs_lose_subdir(to->dir);
	}
	return err;
}

/* Exchanges the names: the inode that had the new name gets the old one. */
static int lanefs_rename_exchange(struct lanefs_handle *h, struct lanefs_side *from,
				  struct lanefs_side *to)
{
	int err;

	err = lanefs_rename_point(h, from, to->inode);
	if (!err)
		err = lanefs_rename_parent(to->inode, to->dir, from->dir);
	lanefs_touch_ctime(to->inode);
	lanefs_inode_journal(h, to->inode, true);
	return err;
}

static int lanefs_rename_once(struct mnt_idmap *idmap, struct lanefs_side *from,
			      struct lanefs_side *to, unsigned int flags)
{
	struct inode *whiteout = NULL;
	struct lanefs_handle h;
	u32 domain = 0;
	int err;

	if (flags & RENAME_WHITEOUT)
		domain = lanefs_choose_domain(from->dir);
	err = lanefs_rename_begin(&h, from, to, flags & RENAME_WHITEOUT ? &domain : NULL);
	if (err)
		return err;
	if (flags & RENAME_WHITEOUT) {
		whiteout = lanefs_inode_new(&h, idmap, from->dir, domain, S_IFCHR | WHITEOUT_MODE,
					    WHITEOUT_DEV);
		if (IS_ERR(whiteout)) {
			lanefs_handle_stop(&h);
			return PTR_ERR(whiteout);
		}
		err = lanefs_xattr_init_security(&h, whiteout, from->dir, &from->dentry->d_name);
		if (err)
			goto take_back;
	}
	err = lanefs_rename_point(&h, to, from->inode);
	if (err == -ENOSPC && !to->inode)
		/* Too many names of one hash: nothing is changed. */
		goto take_back;
	/* An inode in the table stays there (lanefs_inode_confirm()). */
	if (whiteout)
		lanefs_inode_journal(&h, whiteout, true);
	if (!err)
		err = flags & RENAME_EXCHANGE ? lanefs_rename_exchange(&h, from, to) :
						lanefs_rename_over(&h, from, to, whiteout);
	if (!err)
		err = lanefs_rename_parent(from->inode, from->dir, to->dir);
	err = lanefs_rename_done(&h, from, to, err);
	if (whiteout) {
		unlock_new_inode(whiteout);
		iput(whiteout);
	}
	return err;
take_back:
	if (whiteout)
		lanefs_undo_create(&h, whiteout);
	lanefs_handle_stop(&h);
	if (whiteout)
		discard_new_inode(whiteout);
	return err;
}

int lanefs_rename(struct mnt_idmap *idmap, struct inode *old_dir, struct dentry *old_dentry,
		  struct inode *new_dir, struct dentry *new_dentry, unsigned int flags)
{
	struct lanefs_side from = { .dir = old_dir, .dentry = old_dentry,
				    .inode = d_inode(old_dentry) };
	struct lanefs_side to = { .dir = new_dir, .dentry = new_dentry,
				  .inode = d_inode(new_dentry) };
	int err, retries = 0;

	if (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT))
		return -EINVAL;
	if (!(flags & RENAME_EXCHANGE) && to.inode && S_ISDIR(to.inode->i_mode) &&
	    !lanefs_dir_empty(to.inode))
		return -ENOTEMPTY;
	err = lanefs_rename_find(&from);
	if (!err)
		err = lanefs_rename_find(&to);
	if (err)
		return err;
	do {
		err = lanefs_rename_once(idmap, &from, &to, flags);
	} while (err == -ENOSPC && lanefs_retry_alloc(LANEFS_SB(old_dir->i_sb), true, &retries));
	if (!err)
		err = lanefs_dirsync(old_dir);
	return err ?: lanefs_dirsync(new_dir);
}
