// SPDX-License-Identifier: GPL-2.0-only
/* The memory of inodes. */
#include <linux/slab.h>

#include "inode/inode.h"

static struct kmem_cache *lanefs_inode_cache;

/**
 * lanefs_alloc_inode() - allocate an inode, and set up its locks and lists (alloc_inode)
 * @sb: the file system
 *
 * Context: May sleep for memory; within or outside of handles.
 * Return: the inode, or NULL: there is no memory.
 */
struct inode *lanefs_alloc_inode(struct super_block *sb)
{
	struct lanefs_inode *li = alloc_inode_sb(sb, lanefs_inode_cache, GFP_KERNEL);

	if (!li)
		return NULL;
	memset(li, 0, offsetof(struct lanefs_inode, vfs_inode));
	init_rwsem(&li->li_tree_sem);
	xa_init(&li->li_delayed);
	init_rwsem(&li->li_xattr_sem);
	init_rwsem(&li->li_collect_sem);
	/* Long ago, though jiffies begin anywhere. */
	li->li_shared = jiffies - HZ;
	spin_lock_init(&li->li_writeout_lock);
	INIT_LIST_HEAD(&li->li_writeouts);
	spin_lock_init(&li->li_journal_lock);
	spin_lock_init(&li->li_io_lock);
	INIT_LIST_HEAD(&li->li_io_done);
	/* The previous inode in this memory may have been hashed, or faked it (icache.c). */
	INIT_HLIST_NODE(&li->vfs_inode.i_hash);
	return &li->vfs_inode;
}

/**
 * lanefs_free_inode() - free the memory of an inode (free_inode)
 * @inode: the inode, a grace period after its end, or one that nobody has seen
 *
 * Context: Any.
 */
void lanefs_free_inode(struct inode *inode)
{
	kmem_cache_free(lanefs_inode_cache, LANEFS_I(inode));
}

static void lanefs_inode_once(void *object)
{
	inode_init_once(&((struct lanefs_inode *)object)->vfs_inode);
}

/**
 * lanefs_inode_cache_init() - make the slab cache of inodes
 *
 * Context: When the module is loaded.
 * Return: 0 or -ENOMEM.
 */
int __init lanefs_inode_cache_init(void)
{
	/* Targets of symbolic links are read from li_root. */
	lanefs_inode_cache = kmem_cache_create_usercopy("lanefs_inode",
							sizeof(struct lanefs_inode), 0,
							SLAB_RECLAIM_ACCOUNT | SLAB_ACCOUNT,
							offsetof(struct lanefs_inode, li_root),
							LANEFS_ROOT_SIZE, lanefs_inode_once);
	return lanefs_inode_cache ? 0 : -ENOMEM;
}

/**
 * lanefs_inode_cache_exit() - free the slab cache of inodes
 *
 * Context: When no file system is mounted; sleeps until the last inodes have been freed by RCU.
 */
void lanefs_inode_cache_exit(void)
{
	/* Inodes are freed after a grace period. */
	rcu_barrier();
	kmem_cache_destroy(lanefs_inode_cache);
}
