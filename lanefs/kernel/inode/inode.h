/* SPDX-License-Identifier: GPL-2.0-only */
/* Inodes in memory and in the table of their domain, with attributes, and what any type has. */
#ifndef LANEFS_INODE_H
#define LANEFS_INODE_H

#include "tree/tree.h"

/* Runs of this many inodes belong to one shard: whole blocks of the table, whole words of bitmaps. */
#define LANEFS_SHARD_RUN	(LANEFS_INODES_PER_BLOCK * 64)
#define LANEFS_MAX_SHARDS	64

/* A part of a domain's inodes (ialloc.c). */
struct lanefs_shard {
	struct mutex sh_mutex;		/* their bits, and the table's blocks that become used */
	struct xarray sh_inodes;	/* in memory, by index (icache.c) */
} ____cacheline_aligned_in_smp;

/* A block of a domain's inode bitmap, and the block of the orphan bitmap of the same inodes. */
struct lanefs_ibitmap {
	unsigned long *im_bits;		/* of inodes in use (sh_mutex of each); NULL: as on disk */
	struct lanefs_buf *im_used;	/* both blocks: kept from their first use on, as they are */
	struct lanefs_buf *im_orphans;	/* needed inside of handles; or NULL (d_bitmaps_mutex) */
	u32 im_free;			/* when it was counted (count.c) */
	bool im_counted;
	bool im_orphaned;		/* there were orphans when the journal was started */
};

/* Which inode of a number is meant: that of a generation, or of these. */
#define LANEFS_GENERATION_ANY	(-1LL)	/* the one that has it, if there is one */
#define LANEFS_GENERATION_NAMED	(-2LL)	/* the same, and its name or bit says that there is */

/* shards.c */
int lanefs_shards_start(struct lanefs_domain *domain);
void lanefs_shards_stop(struct lanefs_domain *domain);
unsigned int lanefs_shards(const struct lanefs_domain *domain);
struct lanefs_shard *lanefs_shard_of(const struct lanefs_domain *domain, u64 index);

/* ibitmap.c */
int lanefs_ibitmaps_start(struct lanefs_domain *domain);
int lanefs_ibitmaps_count(struct lanefs_domain *domain);
void lanefs_ibitmaps_stop(struct lanefs_domain *domain);
int lanefs_orphans_scan(struct lanefs_domain *domain);
int lanefs_ibitmap_read(struct lanefs_domain *domain, struct lanefs_ibitmap *map);
struct lanefs_buf *lanefs_ibitmap_orphans(struct lanefs_domain *domain, struct lanefs_ibitmap *map);
int lanefs_inodes_used(struct lanefs_domain *domain, u64 first, u64 end);
int lanefs_inodes_find(struct lanefs_domain *domain, u64 *index);

/* The blocks that the inode's bits are in, and the number of its bit there. */
static inline struct lanefs_ibitmap *lanefs_ibitmap_of(const struct lanefs_domain *domain,
						       u64 index, u32 *bit)
{
	return &domain->d_ibitmaps[div_u64_rem(index, LANEFS_BITMAP_BITS, bit)];
}

/* Has the bits in memory, and their block. It may wait for a read, but not for others'. */
static inline int lanefs_ibitmap_load(struct lanefs_domain *domain, struct lanefs_ibitmap *map)
{
	return smp_load_acquire(&map->im_bits) ? 0 : lanefs_ibitmap_read(domain, map);
}

/* ialloc.c */
u32 lanefs_choose_domain(struct inode *dir);
int lanefs_inode_alloc(struct lanefs_handle *h, struct lanefs_domain *domain, u64 *ino,
		       struct lanefs_buf **buf);
void lanefs_inode_free(struct lanefs_handle *h, struct inode *inode);
void lanefs_orphan(struct lanefs_handle *h, struct inode *inode, bool set);

/* inode.c */
struct inode *lanefs_iget(struct super_block *sb, u64 ino);
struct inode *lanefs_iget_outside(struct super_block *sb, u64 ino, s64 generation);
struct inode *lanefs_inode_new(struct lanefs_handle *h, struct mnt_idmap *idmap, struct inode *dir,
			       u32 domain, umode_t mode, dev_t rdev);
int lanefs_setattr_prepare(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr);
int lanefs_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr);
int lanefs_getattr(struct mnt_idmap *idmap, const struct path *path, struct kstat *stat, u32 mask,
		   unsigned int flags);

/* table.c */
int lanefs_handle_start_inode(struct lanefs_handle *h, const struct inode *inode);
struct lanefs_buf *lanefs_dinode_read(struct lanefs_domain *domain, u64 ino,
				      struct lanefs_dinode *di);
bool lanefs_ino_used(const struct lanefs_sb *sbi, u64 ino);
int lanefs_inode_confirm(struct lanefs_domain *domain, u64 ino, s64 generation);
void lanefs_inode_journal(struct lanefs_handle *h, struct inode *inode, bool data);
void lanefs_dirty_inode(struct inode *inode, int flags);

/* slab.c */
int lanefs_inode_cache_init(void);
void lanefs_inode_cache_exit(void);
struct inode *lanefs_alloc_inode(struct super_block *sb);
void lanefs_free_inode(struct inode *inode);

/* icache.c */
struct inode *lanefs_icache_new(struct super_block *sb);
int lanefs_icache_add(struct inode *inode);
struct inode *lanefs_icache_get(struct super_block *sb, u64 ino, s64 generation);
void lanefs_icache_forget(struct inode *inode);
void lanefs_icache_evict(struct inode *inode);
void lanefs_icache_list(struct lanefs_sb *sbi);
void lanefs_set_links(struct inode *inode, unsigned int links);
bool lanefs_any_unlinked(const struct lanefs_sb *sbi);

/* attr.c */
struct file_kattr;
void lanefs_set_flags(struct inode *inode, u32 flags);
void lanefs_inherit_flags(struct inode *inode, const struct inode *dir);
void lanefs_fill_attributes(const struct inode *inode, struct kstat *stat);
int lanefs_fileattr_get(struct dentry *dentry, struct file_kattr *fa);
int lanefs_fileattr_set(struct mnt_idmap *idmap, struct dentry *dentry, struct file_kattr *fa);

/* xattr.c */
extern lanefs_xattr_table lanefs_xattr_handlers[];
int lanefs_xattr_load(struct inode *inode, u8 space, const char *name, void *buffer, size_t size);
int lanefs_xattr_store(struct lanefs_handle *h, struct inode *inode, u8 space, const char *name,
		       const void *value, size_t size, int flags);
bool lanefs_xattr_retry(struct inode *inode, int *retries);
ssize_t lanefs_listxattr(struct dentry *dentry, char *buffer, size_t size);
int lanefs_xattr_init_security(struct lanefs_handle *h, struct inode *inode, struct inode *dir,
			       const struct qstr *name);
int lanefs_xattr_drop(struct lanefs_handle *h, struct inode *inode);

/* acl.c */
struct lanefs_acls {	/* what a new inode inherits; NULL: none */
	struct posix_acl *access;
	struct posix_acl *inherit;
};

struct posix_acl *lanefs_get_acl(struct inode *inode, int type, bool rcu);
int lanefs_set_acl(struct mnt_idmap *idmap, lanefs_acl_object *object, struct posix_acl *acl,
		   int type);
int lanefs_acls_prepare(struct inode *dir, umode_t *mode, struct lanefs_acls *acls);
int lanefs_acls_init(struct lanefs_handle *h, struct inode *inode, const struct lanefs_acls *acls);
void lanefs_acls_release(struct lanefs_acls *acls);

/* symlink.c */
extern const struct inode_operations lanefs_symlink_iops;
int lanefs_symlink_store(struct lanefs_handle *h, struct inode *inode, const char *target,
			 unsigned int length);
int lanefs_symlink_drop(struct lanefs_handle *h, struct inode *inode);

/* export.c */
struct export_operations;
extern const struct export_operations lanefs_export_ops;

/* ioctl.c */
long lanefs_ioctl(struct file *file, unsigned int command, unsigned long argument);

#endif
