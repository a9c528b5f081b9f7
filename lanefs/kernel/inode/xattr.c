// SPDX-License-Identifier: GPL-2.0-only
/*
 * Extended attributes: all of an inode in one metadata block of its domain (format.h), changed
 * under li_xattr_sem in a handle, read under it without one. An inode without any has no block.
 */
#include <linux/capability.h>
#include <linux/security.h>
#include <linux/xattr.h>

#include "core/xattrs.h"
#include "inode/inode.h"

/* NULL: it has none. */
static struct lanefs_buf *lanefs_xattr_read(struct inode *inode)
{
	u64 block = LANEFS_I(inode)->li_xattr;

	if (!block)
		return NULL;
	return lanefs_buf_read(lanefs_journal_of(inode), block, LANEFS_MAGIC_XATTR, inode->i_ino);
}

/* The length of the value, which is copied if there is a buffer. */
static int lanefs_xattr_copy(struct inode *inode, u8 space, const char *name, void *buffer,
			     size_t size)
{
	struct lanefs_buf *buf = lanefs_xattr_read(inode);
	struct lanefs_xattr *entry;
	int length = -ENODATA;

	if (IS_ERR_OR_NULL(buf))
		return buf ? PTR_ERR(buf) : -ENODATA;
	entry = lanefs_xattrs_find(buf->b_data, space, name, strlen(name));
	if (entry) {
		length = le16_to_cpu(entry->xa_value_len);
		if (buffer && size < length)
			length = -ERANGE;
		else if (buffer)
			memcpy(buffer, lanefs_xattr_value(entry), length);
	}
	lanefs_buf_put(buf);
	return length;
}

/* The same for callers that do not hold li_xattr_sem. */
int lanefs_xattr_load(struct inode *inode, u8 space, const char *name, void *buffer, size_t size)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	int length;

	/* Writes ask each time whether there is a capability to be taken away. */
	if (!READ_ONCE(li->li_xattr))
		return -ENODATA;
	down_read(&li->li_xattr_sem);
	length = lanefs_xattr_copy(inode, space, name, buffer, size);
	up_read(&li->li_xattr_sem);
	return length;
}

static int lanefs_xattr_get(const struct xattr_handler *handler, struct dentry *dentry,
			    struct inode *inode, const char *name, void *buffer, size_t size)
{
	return lanefs_xattr_load(inode, handler->flags, name, buffer, size);
}

/* Gives the inode an empty block. */
static struct lanefs_buf *lanefs_xattr_new_block(struct lanefs_handle *h, struct inode *inode)
{
	struct lanefs_domain *domain = lanefs_domain_of(inode);
	struct lanefs_buf *buf;
	int err;

	err = lanefs_reserve(h, domain, 1, LANEFS_FOR_METADATA);
	if (err)
		return ERR_PTR(err);
	buf = lanefs_buf_alloc(h, domain, LANEFS_MAGIC_XATTR, inode->i_ino);
	if (IS_ERR(buf))
		return buf;
	lanefs_xattrs_clear(buf->b_data);
	WRITE_ONCE(LANEFS_I(inode)->li_xattr, buf->b_block);
	lanefs_add_blocks(inode, 1);
	return buf;
}

/**
 * lanefs_xattr_drop() - free the block of an inode's attributes, if there is one
 * @h: the handle
 * @inode: the inode, to be journaled or freed afterwards
 *
 * Context: In a handle of the inode's domain, with li_xattr_sem held for writing, or when nobody
 * else knows the inode.
 * Return: 0 or the error of lanefs_free_blocks().
 */
int lanefs_xattr_drop(struct lanefs_handle *h, struct inode *inode)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	u64 block = li->li_xattr;

	if (!block)
		return 0;
	WRITE_ONCE(li->li_xattr, 0);
	lanefs_add_blocks(inode, -1);
	return lanefs_free_blocks(h, lanefs_domain_of(inode), block, 1, true);
}

static int lanefs_xattr_remove(struct lanefs_handle *h, struct inode *inode,
			       struct lanefs_buf *buf, u8 space, const char *name)
{
	if (le16_to_cpu(lanefs_buf_header(buf)->lh_count) == 1)
		return lanefs_xattr_drop(h, inode);
	lanefs_buf_join(h, buf);
	lanefs_xattrs_remove(buf->b_data, lanefs_xattrs_find(buf->b_data, space, name,
							     strlen(name)));
	return 0;
}

/* As setxattr(2), or removexattr(2) if there is no value. -ENOSPC: nothing is changed. */
static int lanefs_xattr_change(struct lanefs_handle *h, struct inode *inode, u8 space,
			       const char *name, const void *value, size_t size, int flags)
{
	struct lanefs_buf *buf = lanefs_xattr_read(inode);
	bool found;
	int err;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	found = buf && lanefs_xattrs_find(buf->b_data, space, name, strlen(name));
	if (found && (flags & XATTR_CREATE)) {
		err = -EEXIST;
	} else if (!found && (!value || (flags & XATTR_REPLACE))) {
		err = -ENODATA;
	} else if (!value) {
		err = lanefs_xattr_remove(h, inode, buf, space, name);
	} else {
		if (!buf)
			buf = lanefs_xattr_new_block(h, inode);
		if (IS_ERR(buf))
			return PTR_ERR(buf);
		lanefs_buf_join(h, buf);
		err = lanefs_xattrs_set(buf->b_data, space, name, strlen(name), value, size);
	}
	lanefs_buf_put(buf);
	return err;
}

static bool lanefs_xattr_fits(const char *name, size_t size)
{
	return size <= LANEFS_XATTR_VALUE_MAX &&
	       LANEFS_XATTR_SIZE(strlen(name), size) <= LANEFS_BODY_SIZE;
}

/* The same for callers that do not hold li_xattr_sem; they journal the inode themselves. */
int lanefs_xattr_store(struct lanefs_handle *h, struct inode *inode, u8 space, const char *name,
		       const void *value, size_t size, int flags)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	int err;

	if (!lanefs_xattr_fits(name, size))
		return -ENOSPC;
	down_write(&li->li_xattr_sem);
	err = lanefs_xattr_change(h, inode, space, name, value, size, flags);
	up_write(&li->li_xattr_sem);
	return err;
}

/* After -ENOSPC: whether to try again. If the inode has a block, that is what is full. */
bool lanefs_xattr_retry(struct inode *inode, int *retries)
{
	return !LANEFS_I(inode)->li_xattr &&
	       lanefs_retry_alloc(LANEFS_SB(inode->i_sb), true, retries);
}

static int lanefs_xattr_set_once(struct inode *inode, u8 space, const char *name,
				 const void *value, size_t size, int flags)
{
	struct lanefs_handle h;
	int err;

	err = lanefs_handle_start_inode(&h, inode);
	if (err)
		return err;
	err = lanefs_xattr_store(&h, inode, space, name, value, size, flags);
	if (!err) {
		lanefs_touch_ctime(inode);
		lanefs_inode_journal(&h, inode, true);
	}
	lanefs_handle_stop(&h);
	return err;
}

static int lanefs_xattr_set(const struct xattr_handler *handler, struct mnt_idmap *idmap,
			    struct dentry *dentry, struct inode *inode, const char *name,
			    const void *value, size_t size, int flags)
{
	int err, retries = 0;

	/* It would never fit. */
	if (!lanefs_xattr_fits(name, size))
		return -ENOSPC;
	do {
		err = lanefs_xattr_set_once(inode, handler->flags, name, value, size, flags);
	} while (err == -ENOSPC && lanefs_xattr_retry(inode, &retries));
	return err;
}

/* Stores the attributes that security modules give to a new inode. */
static int lanefs_xattr_init(struct inode *inode, const struct xattr *attributes, void *handle)
{
	const struct xattr *one;
	int err = 0;

	for (one = attributes; one->name && !err; one++)
		err = lanefs_xattr_store(handle, inode, LANEFS_XATTR_SECURITY, one->name,
					 one->value, one->value_len, 0);
	return err;
}

/**
 * lanefs_xattr_init_security() - store the attributes that security modules give to a new inode
 * @h: the handle
 * @inode: the inode, to be journaled afterwards
 * @dir: its directory
 * @name: its name there, or NULL: it gets none
 *
 * Context: In a handle of the inode's domain; takes li_xattr_sem.
 * Return: 0, -ENOSPC, the error of a read, or of a security module.
 */
int lanefs_xattr_init_security(struct lanefs_handle *h, struct inode *inode, struct inode *dir,
			       const struct qstr *name)
{
	return security_inode_init_security(inode, dir, name, lanefs_xattr_init, h);
}

static const char *const lanefs_xattr_prefixes[] = {
	[LANEFS_XATTR_USER] = XATTR_USER_PREFIX,
	[LANEFS_XATTR_TRUSTED] = XATTR_TRUSTED_PREFIX,
	[LANEFS_XATTR_SECURITY] = XATTR_SECURITY_PREFIX,
	[LANEFS_XATTR_ACL_ACCESS] = XATTR_NAME_POSIX_ACL_ACCESS,
	[LANEFS_XATTR_ACL_DEFAULT] = XATTR_NAME_POSIX_ACL_DEFAULT,
};

/* Appends a name at buffer + done, if there is a buffer. The bytes so far, or -ERANGE. */
static ssize_t lanefs_xattr_list_one(const struct lanefs_xattr *entry, char *buffer, size_t size,
				     ssize_t done)
{
	const char *prefix = lanefs_xattr_prefixes[entry->xa_space];
	size_t start = strlen(prefix), length = start + entry->xa_name_len + 1;

	if (entry->xa_space == LANEFS_XATTR_TRUSTED && !capable(CAP_SYS_ADMIN))
		return done;
	if (buffer) {
		if (size - done < length)
			return -ERANGE;
		memcpy(buffer + done, prefix, start);
		memcpy(buffer + done + start, entry->xa_name, entry->xa_name_len);
		buffer[done + length - 1] = '\0';
	}
	return done + length;
}

/**
 * lanefs_listxattr() - list the names of an inode's extended attributes (listxattr)
 * @dentry: of the inode
 * @buffer: gets the names, each with a zero byte; or NULL
 * @size: of it in bytes
 *
 * Names of trusted.* take CAP_SYS_ADMIN.
 *
 * Context: Outside of handles; takes li_xattr_sem, and may sleep for a read.
 * Return: the bytes of the names, -ERANGE: they are more than @size, or the error of the read.
 */
ssize_t lanefs_listxattr(struct dentry *dentry, char *buffer, size_t size)
{
	struct inode *inode = d_inode(dentry);
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_xattr *entry = NULL;
	struct lanefs_buf *buf;
	ssize_t done = 0;

	if (!READ_ONCE(li->li_xattr))
		return 0;
	down_read(&li->li_xattr_sem);
	buf = lanefs_xattr_read(inode);
	if (IS_ERR(buf))
		done = PTR_ERR(buf);
	while (!IS_ERR_OR_NULL(buf) && done >= 0 &&
	       (entry = lanefs_xattrs_next(buf->b_data, entry)))
		done = lanefs_xattr_list_one(entry, buffer, size, done);
	if (!IS_ERR(buf))
		lanefs_buf_put(buf);
	up_read(&li->li_xattr_sem);
	return done;
}

static const struct xattr_handler lanefs_xattr_user = {
	.prefix = XATTR_USER_PREFIX,
	.flags = LANEFS_XATTR_USER,
	.get = lanefs_xattr_get,
	.set = lanefs_xattr_set,
};

static const struct xattr_handler lanefs_xattr_trusted = {
	.prefix = XATTR_TRUSTED_PREFIX,
	.flags = LANEFS_XATTR_TRUSTED,
	.get = lanefs_xattr_get,
	.set = lanefs_xattr_set,
};

static const struct xattr_handler lanefs_xattr_security = {
	.prefix = XATTR_SECURITY_PREFIX,
	.flags = LANEFS_XATTR_SECURITY,
	.get = lanefs_xattr_get,
	.set = lanefs_xattr_set,
};

lanefs_xattr_table lanefs_xattr_handlers[] = {
	&lanefs_xattr_user,
	&lanefs_xattr_trusted,
	&lanefs_xattr_security,
	LANEFS_ACL_XATTR_HANDLERS
	NULL,
};
