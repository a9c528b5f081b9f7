/* SPDX-License-Identifier: GPL-2.0-only */
/* Every difference between the kernels that lanefs builds for: 6.1 and 6.12. */
#ifndef LANEFS_COMPAT_H
#define LANEFS_COMPAT_H

#include <linux/exportfs.h>
#include <linux/fs.h>
#include <linux/iomap.h>
#include <linux/posix_acl_xattr.h>
#include <linux/shrinker.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#include <asm/unaligned.h>
#else
#include <linux/unaligned.h>
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
/* Identity mappings of mounts are passed on unseen. */
#define mnt_idmap user_namespace
#define nop_mnt_idmap init_user_ns
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
static inline struct timespec64 lanefs_touch_ctime(struct inode *inode)
{
	inode->i_ctime = current_time(inode);
	return inode->i_ctime;
}

#define lanefs_get_ctime(inode) ((inode)->i_ctime)
#define lanefs_set_ctime(inode, ts) ((inode)->i_ctime = (ts))
#define lanefs_fillattr(idmap, mask, inode, stat) generic_fillattr(idmap, inode, stat)
#else
#define lanefs_get_ctime(inode) inode_get_ctime(inode)
#define lanefs_set_ctime(inode, ts) inode_set_ctime_to_ts(inode, ts)
#define lanefs_touch_ctime(inode) inode_set_ctime_current(inode)
#define lanefs_fillattr(idmap, mask, inode, stat) generic_fillattr(idmap, mask, inode, stat)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define lanefs_get_atime(inode) ((inode)->i_atime)
#define lanefs_get_mtime(inode) ((inode)->i_mtime)
#define lanefs_set_atime(inode, ts) ((inode)->i_atime = (ts))
#define lanefs_set_mtime(inode, ts) ((inode)->i_mtime = (ts))
#else
#define lanefs_get_atime(inode) inode_get_atime(inode)
#define lanefs_get_mtime(inode) inode_get_mtime(inode)
#define lanefs_set_atime(inode, ts) inode_set_atime_to_ts(inode, ts)
#define lanefs_set_mtime(inode, ts) inode_set_mtime_to_ts(inode, ts)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
static inline void lanefs_set_uuid(struct super_block *sb, const u8 *uuid)
{
	import_uuid(&sb->s_uuid, uuid);
}
#else
#define lanefs_set_uuid(sb, uuid) super_set_uuid(sb, uuid, UUID_SIZE)
#endif

/* ACLs were of inodes, and set as attributes; now they are of dentries, and set by themselves. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define lanefs_acl_object struct inode
#define lanefs_acl_inode(object) (object)
#define lanefs_acl_chmod(idmap, dentry, mode) posix_acl_chmod(idmap, d_inode(dentry), mode)
#define LANEFS_ACL_OPS .get_acl = lanefs_get_acl, .set_acl = lanefs_set_acl
#define LANEFS_ACL_XATTR_HANDLERS &posix_acl_access_xattr_handler, &posix_acl_default_xattr_handler,
#else
#define lanefs_acl_object struct dentry
#define lanefs_acl_inode(object) d_inode(object)
#define lanefs_acl_chmod posix_acl_chmod
#define LANEFS_ACL_OPS .get_inode_acl = lanefs_get_acl, .set_acl = lanefs_set_acl
#define LANEFS_ACL_XATTR_HANDLERS
#endif

/* An element of the superblock's table of attribute handlers. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
typedef const struct xattr_handler *lanefs_xattr_table;
#else
typedef const struct xattr_handler *const lanefs_xattr_table;
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define FILEID_INO64_GEN	((enum fid_type)0x81)
#define FILEID_INO64_GEN_PARENT	((enum fid_type)0x82)
#endif

/* The shrinker of a mount, and the way from it to what it is for. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
struct lanefs_shrinker {
	struct shrinker shrinker;
	void *private;
};

static inline void *lanefs_shrinker_private(struct shrinker *shrinker)
{
	return container_of(shrinker, struct lanefs_shrinker, shrinker)->private;
}

typedef unsigned long (*lanefs_shrink_fn)(struct shrinker *, struct shrink_control *);

static inline int lanefs_shrinker_start(struct lanefs_shrinker *s, lanefs_shrink_fn count,
					lanefs_shrink_fn scan, void *private, const char *name)
{
	s->private = private;
	s->shrinker.count_objects = count;
	s->shrinker.scan_objects = scan;
	s->shrinker.seeks = DEFAULT_SEEKS;
	return register_shrinker(&s->shrinker, "lanefs:%s", name);
}

static inline void lanefs_shrinker_stop(struct lanefs_shrinker *s)
{
	unregister_shrinker(&s->shrinker);
}
#else
struct lanefs_shrinker {
	struct shrinker *shrinker;
};

static inline void *lanefs_shrinker_private(struct shrinker *shrinker)
{
	return shrinker->private_data;
}

typedef unsigned long (*lanefs_shrink_fn)(struct shrinker *, struct shrink_control *);

static inline int lanefs_shrinker_start(struct lanefs_shrinker *s, lanefs_shrink_fn count,
					lanefs_shrink_fn scan, void *private, const char *name)
{
	s->shrinker = shrinker_alloc(0, "lanefs:%s", name);
	if (!s->shrinker)
		return -ENOMEM;
	s->shrinker->count_objects = count;
	s->shrinker->scan_objects = scan;
	s->shrinker->private_data = private;
	shrinker_register(s->shrinker);
	return 0;
}

static inline void lanefs_shrinker_stop(struct lanefs_shrinker *s)
{
	shrinker_free(s->shrinker);
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define lanefs_bdev_freeze freeze_bdev
#define lanefs_bdev_thaw thaw_bdev
#else
#define lanefs_bdev_freeze bdev_freeze
#define lanefs_bdev_thaw bdev_thaw
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define LANEFS_ERROR_REMOVE	.error_remove_page = lanefs_error_remove_page
#define lanefs_generic_error_remove(mapping, folio) generic_error_remove_page(mapping, &(folio)->page)
#else
#define LANEFS_ERROR_REMOVE	.error_remove_folio = lanefs_error_remove
#define lanefs_generic_error_remove generic_error_remove_folio
#endif

/* An I/O end's bio was a pointer, and the way back from the bio its private field. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define LANEFS_MAP_BLOCKS_ARGS struct iomap_writepage_ctx *wpc, struct inode *inode, loff_t offset
#define lanefs_ioend_bio(ioend) ((ioend)->io_bio)

static inline struct iomap_ioend *lanefs_ioend_of(struct bio *bio)
{
	return bio->bi_private;
}
#else
#define LANEFS_MAP_BLOCKS_ARGS \
	struct iomap_writepage_ctx *wpc, struct inode *inode, loff_t offset, unsigned int len
#define lanefs_ioend_bio(ioend) (&(ioend)->io_bio)

static inline struct iomap_ioend *lanefs_ioend_of(struct bio *bio)
{
	return iomap_ioend_from_bio(bio);
}
#endif

/* The operations that check for a stale mapping before a folio is written to. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define lanefs_iomap_checks iomap_page_ops
#define iomap_checks page_ops
#else
#define lanefs_iomap_checks iomap_folio_ops
#define iomap_checks folio_ops
#endif

/* The fourth argument came in 6.13, and in updates of 6.12. */
typedef ssize_t (*lanefs_write3_fn)(struct kiocb *, struct iov_iter *, const struct iomap_ops *);
typedef ssize_t (*lanefs_write4_fn)(struct kiocb *, struct iov_iter *, const struct iomap_ops *,
				    void *);

static inline ssize_t lanefs_write3(lanefs_write3_fn write, struct kiocb *iocb,
				    struct iov_iter *from, const struct iomap_ops *ops)
{
	return write(iocb, from, ops);
}

static inline ssize_t lanefs_write4(lanefs_write4_fn write, struct kiocb *iocb,
				    struct iov_iter *from, const struct iomap_ops *ops)
{
	return write(iocb, from, ops, NULL);
}

#define lanefs_iomap_write(iocb, from, ops)						\
	_Generic(&iomap_file_buffered_write,						\
		 lanefs_write3_fn: lanefs_write3((void *)iomap_file_buffered_write, iocb, from,	\
						 ops),					\
		 lanefs_write4_fn: lanefs_write4((void *)iomap_file_buffered_write, iocb, from,	\
						 ops))

/* Whether iomap or the file system moves the file position after a buffered write. */
static inline ssize_t lanefs_buffered_write(struct kiocb *iocb, struct iov_iter *from,
					    const struct iomap_ops *ops)
{
	ssize_t written = lanefs_iomap_write(iocb, from, ops);

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	if (written > 0)
		iocb->ki_pos += written;
#endif
	return written;
}

/* Non-blocking buffered I/O was declared in each open file, and is now in file_operations. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define LANEFS_MODE_NOWAIT	(FMODE_NOWAIT | FMODE_BUF_RASYNC | FMODE_BUF_WASYNC)
#define LANEFS_FOPS_NOWAIT
#else
#define LANEFS_MODE_NOWAIT	FMODE_NOWAIT
#define LANEFS_FOPS_NOWAIT	.fop_flags = FOP_BUFFER_RASYNC | FOP_BUFFER_WASYNC,
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define lanefs_splice_read generic_file_splice_read
#else
#define lanefs_splice_read filemap_splice_read
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define lanefs_dirty_folio filemap_dirty_folio
#else
#define lanefs_dirty_folio iomap_dirty_folio
#endif

#endif
