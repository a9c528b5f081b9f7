// SPDX-License-Identifier: GPL-2.0-only
/*
 * POSIX ACLs: attributes without a name, in namespaces of their own (format.h). The VFS checks and
 * caches them, and knows of a directory without a default one by a look at its inode.
 */
#include <linux/slab.h>

#include "inode/inode.h"

static u8 lanefs_acl_space(int type)
{
	return type == ACL_TYPE_ACCESS ? LANEFS_XATTR_ACL_ACCESS : LANEFS_XATTR_ACL_DEFAULT;
}

/* The ACL, NULL if there is none, or -ERANGE if it has become longer meanwhile. */
static struct posix_acl *lanefs_acl_load(struct inode *inode, u8 space)
{
	int size = lanefs_xattr_load(inode, space, "", NULL, 0);
	struct posix_acl *acl;
	void *value;

	if (size < 0)
		return size == -ENODATA ? NULL : ERR_PTR(size);
	value = kmalloc(size, GFP_KERNEL);
	if (!value)
		return ERR_PTR(-ENOMEM);
	size = lanefs_xattr_load(inode, space, "", value, size);
	if (size < 0)
		acl = size == -ENODATA ? NULL : ERR_PTR(size);
	else
		acl = posix_acl_from_xattr(&init_user_ns, value, size);
	kfree(value);
	return acl;
}

struct posix_acl *lanefs_get_acl(struct inode *inode, int type, bool rcu)
{
	struct posix_acl *acl;

	if (rcu)
		return ERR_PTR(-ECHILD);
	do {
		acl = lanefs_acl_load(inode, lanefs_acl_space(type));
	} while (acl == ERR_PTR(-ERANGE));
	return acl;
}

/*
 * Gives the inode the ACL, or takes it away; -ENODATA: there was none to take away. The caller journals
 * the inode.
 */
static int lanefs_acl_store(struct lanefs_handle *h, struct inode *inode, int type,
			    struct posix_acl *acl)
{
	void *value = NULL;
	size_t size = 0;
	int err;

	if (acl) {
		value = lanefs_acl_to_xattr(acl, &size, GFP_NOFS);
		if (!value)
			return -ENOMEM;
	}
	err = lanefs_xattr_store(h, inode, lanefs_acl_space(type), "", value, size, 0);
	kfree(value);
	if (!err)
		set_cached_acl(inode, type, acl);
	return err;
}

static int lanefs_set_acl_once(struct inode *inode, struct posix_acl *acl, int type, umode_t mode)
{
	struct lanefs_handle h;
	bool unchanged;
	int err;

	err = lanefs_handle_start_inode(&h, inode);
	if (err)
		return err;
	err = lanefs_acl_store(&h, inode, type, acl);
	unchanged = err == -ENODATA && mode == inode->i_mode;
	if (err == -ENODATA)
		err = 0;
	if (!err && !unchanged) {
		inode->i_mode = mode;
		lanefs_touch_ctime(inode);
		lanefs_inode_journal(&h, inode, true);
	}
	lanefs_handle_stop(&h);
	return err;
}

int lanefs_set_acl(struct mnt_idmap *idmap, lanefs_acl_object *object, struct posix_acl *acl,
		   int type)
{
	struct inode *inode = lanefs_acl_inode(object);
	umode_t mode = inode->i_mode;
	int err = 0, retries = 0;

	/* The mode may say all that the ACL does; then there is none. */
	if (type == ACL_TYPE_ACCESS && acl)
		err = posix_acl_update_mode(idmap, inode, &mode, &acl);
	if (err)
		return err;
	do {
		err = lanefs_set_acl_once(inode, acl, type, mode);
	} while (err == -ENOSPC && lanefs_xattr_retry(inode, &retries));
	return err;
}

/**
 * lanefs_acls_prepare() - compute the ACLs that a new object in a directory inherits
 * @dir: the directory
 * @mode: of the object; what the ACLs, or the umask, leave of it
 * @acls: the ACLs; on success lanefs_acls_release() is to follow
 *
 * Context: Outside of handles, with the directory's i_rwsem; may read its default ACL.
 * Return: 0, -ENOMEM, or the error of reading that.
 */
int lanefs_acls_prepare(struct inode *dir, umode_t *mode, struct lanefs_acls *acls)
{
	return posix_acl_create(dir, mode, &acls->inherit, &acls->access);
}

/**
 * lanefs_acls_init() - store the ACLs that a new inode inherits
 * @h: the handle
 * @inode: the inode, to be journaled afterwards
 * @acls: of lanefs_acls_prepare()
 *
 * Context: In a handle of the inode's domain; takes li_xattr_sem.
 * Return: 0, -ENOMEM, -ENOSPC: no block, or both do not fit into one, or the error of a read.
 */
int lanefs_acls_init(struct lanefs_handle *h, struct inode *inode, const struct lanefs_acls *acls)
{
	int err = 0;

	if (acls->inherit)
		err = lanefs_acl_store(h, inode, ACL_TYPE_DEFAULT, acls->inherit);
	if (!err && acls->access)
		err = lanefs_acl_store(h, inode, ACL_TYPE_ACCESS, acls->access);
	return err;
}

/**
 * lanefs_acls_release() - drop the references to ACLs
 * @acls: of lanefs_acls_prepare()
 *
 * Context: Any.
 */
void lanefs_acls_release(struct lanefs_acls *acls)
{
	posix_acl_release(acls->inherit);
	posix_acl_release(acls->access);
}
