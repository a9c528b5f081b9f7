/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every difference between the kernels that lanefs builds for, but those of iomap
 * (file/compat_iomap.h). It is tested on 6.1, 6.12 and 7.2, and compiles for 7.3.
 */
#ifndef LANEFS_COMPAT_H
#define LANEFS_COMPAT_H

#include <linux/blkdev.h>
#include <linux/cgroup.h>
#include <linux/exportfs.h>
#include <linux/fs.h>
#include <linux/pagemap.h>
#include <linux/posix_acl_xattr.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#include <asm/unaligned.h>
#else
#include <linux/unaligned.h>
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
#include <linux/filelock.h>
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
/* Identity mappings of mounts are passed on unseen. */
#define mnt_idmap user_namespace
#define nop_mnt_idmap init_user_ns
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define file_kattr fileattr
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

/* Since 6.13 a change moves the time that somebody has seen, however soon after it comes. */
#ifndef FS_MGTIME
#define FS_MGTIME 0
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

/* An ACL as an attribute's value, which the caller frees. NULL: there is no memory. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
static inline void *lanefs_acl_to_xattr(const struct posix_acl *acl, size_t *size, gfp_t flags)
{
	/* The compiler takes one of the two functions for the other, but for what they return. */
	int (*fill)(struct user_namespace *, const struct posix_acl *, void *, size_t) =
		posix_acl_to_xattr;
	void *value;

	*size = posix_acl_xattr_size(acl->a_count);
	value = kmalloc(*size, flags);
	if (value)
		fill(&init_user_ns, acl, value, *size);
	return value;
}
#else
#define lanefs_acl_to_xattr(acl, size, flags) posix_acl_to_xattr(&init_user_ns, acl, size, flags)
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

/* Non-blocking buffered I/O was declared in each open file, and is now in file_operations. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define LANEFS_MODE_NOWAIT	(FMODE_NOWAIT | FMODE_BUF_RASYNC | FMODE_BUF_WASYNC)
#define LANEFS_FOPS_NOWAIT
#else
#define LANEFS_MODE_NOWAIT	FMODE_NOWAIT
#define LANEFS_FOPS_NOWAIT	.fop_flags = FOP_BUFFER_RASYNC | FOP_BUFFER_WASYNC,
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define lanefs_generic_splice_read generic_file_splice_read
#define LANEFS_SUPER_REMOVED
#else
#define lanefs_generic_splice_read filemap_splice_read
/* A file system is told that its device has been removed. */
#define LANEFS_SUPER_REMOVED	.shutdown = lanefs_removed,
#endif

/* The state of an inode became a type of its own. Nobody else knows the inode where it is changed. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
#define lanefs_inode_state(inode) READ_ONCE((inode)->i_state)
#define lanefs_inode_state_init(inode) ((inode)->i_state = 0)
#define lanefs_inode_state_add(inode, flags) ((inode)->i_state |= (flags))
#else
#define lanefs_inode_state(inode) inode_state_read_once(inode)
#define lanefs_inode_state_init(inode) inode_state_assign_raw(inode, 0)
#define lanefs_inode_state_add(inode, flags) inode_state_set_raw(inode, flags)
#endif

/* An inode's number, which was a long. */
static inline u64 lanefs_number(const struct inode *inode)
{
	return inode->i_ino;
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
#define lanefs_wait_on_new_inode wait_on_inode
#else
#define lanefs_wait_on_new_inode wait_on_new_inode
#endif

/*
 * A task that has used up its CPU time (cpu.max) now stops only where it leaves the kernel. That it
 * waited for a CPU is seen with CONFIG_SCHED_INFO, as distributions have it.
 */
#if defined(CONFIG_CFS_BANDWIDTH) && defined(CONFIG_SCHED_INFO) && \
	LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define LANEFS_THROTTLED_IN_KERNEL
#endif

/* That work is done by the CPU that queued it was the default, and is now said. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define LANEFS_WQ_PERCPU	0
#else
#define LANEFS_WQ_PERCPU	WQ_PERCPU
#endif

/* mkdir returns an error, or another dentry than the one that it was given, if there is one. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
typedef int lanefs_mkdir_result;
#define lanefs_mkdir_returns(err) (err)
#else
typedef struct dentry *lanefs_mkdir_result;
#define lanefs_mkdir_returns(err) ERR_PTR(err)
#endif

/* A new name that must not be there yet is not told from others any more. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 3, 0)
#define LANEFS_CREATE_EXCL	, bool excl
#else
#define LANEFS_CREATE_EXCL
#endif

/*
 * The cached folio, with FGP_CREAT made with `gfp`, locked if flags say so, with a reference; or
 * NULL.
 */
static inline struct folio *lanefs_get_folio(struct address_space *mapping, pgoff_t index,
					     unsigned int flags, gfp_t gfp)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
	return __filemap_get_folio(mapping, index, flags, gfp);
#else
	struct folio *folio = __filemap_get_folio(mapping, index, (__force fgf_t)flags, gfp);

	return IS_ERR(folio) ? NULL : folio;
#endif
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#define lanefs_copy_to_folio(folio, offset, count, from) \
	copy_page_from_iter_atomic(&(folio)->page, offset, count, from)
#else
#define lanefs_copy_to_folio copy_folio_from_iter_atomic
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define lanefs_folio_flags(folio) ((folio)->flags)
#else
#define lanefs_folio_flags(folio) ((folio)->flags.f)
#endif

/* Adds sectors to a bio that discards; an error: there is no memory, which cannot be any more. */
static inline int lanefs_issue_discard(struct block_device *bdev, sector_t start, sector_t count,
				       struct bio **bio)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
	return __blkdev_issue_discard(bdev, start, count, GFP_NOFS, bio);
#else
	__blkdev_issue_discard(bdev, start, count, GFP_NOFS, bio);
	return 0;
#endif
}

#endif
