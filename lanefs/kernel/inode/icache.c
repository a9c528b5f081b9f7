// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inodes in memory. The VFS keeps all of them, of all file systems, in one hash and those of a
 * superblock on one list, under a lock each. Those of lanefs are in neither: each domain has
 * its own by their index (sh_inodes). With ablate=inodes they are where the VFS looks for them.
 *
 * An inode is in sh_inodes from before anybody can ask for it until the end of its eviction, and it
 * is freed after a grace period; so what is found there under RCU can be asked for a reference,
 * which igrab() refuses when the eviction has begun. Then who looks waits until the entry is gone,
 * or is another inode: the number is given out again before the eviction of the inode that had it
 * ends. Those who wait hold no handle, which an eviction may need.
 *
 * The umount walks the VFS's list, and a watch of inotify holds an inode until it is found there:
 * so they are put on the list first (lanefs_icache_list()). What else walks it does not see them:
 * drop_caches does not drop the pages of inodes that are in use.
 */
#include <linux/slab.h>
#include <linux/writeback.h>

#include "inode/inode.h"

static bool lanefs_own_icache(const struct super_block *sb)
{
	return !lanefs_ablated(LANEFS_SB(sb), LANEFS_ABLATE_INODES);
}

static struct xarray *lanefs_icache_of(const struct lanefs_domain *domain, u64 ino)
{
	return &lanefs_shard_of(domain, lanefs_ino_index(ino))->sh_inodes;
}

static bool lanefs_icache_leaving(struct inode *inode)
{
	return lanefs_inode_state(inode) & (I_FREEING | I_WILL_FREE);
}

static struct lanefs_domain *lanefs_domain_of_ino(const struct lanefs_sb *sbi, u64 ino)
{
	return sbi->s_domain[lanefs_ino_domain(ino)];
}

/* An inode without a number, on no list. NULL: there is no memory. */
struct inode *lanefs_icache_new(struct super_block *sb)
{
	struct inode *inode;

	if (!lanefs_own_icache(sb))
		return new_inode(sb);
	inode = lanefs_alloc_inode(sb);
	if (!inode)
		return NULL;
	if (inode_init_always(sb, inode)) {
		lanefs_free_inode(inode);
		return NULL;
	}
	lanefs_inode_state_init(inode);
	INIT_LIST_HEAD(&inode->i_sb_list);
	return inode;
}

/* Whether the inode of that number is in memory and stays there. */
static bool lanefs_icache_lives(struct lanefs_domain *domain, u64 ino)
{
	struct inode *inode;
	bool lives;

	rcu_read_lock();
	inode = xa_load(lanefs_icache_of(domain, ino), lanefs_ino_index(ino));
	lives = inode && !lanefs_icache_leaving(inode);
	rcu_read_unlock();
	return lives;
}

/* It can be found from now on; whoever does waits until it is unlocked. */
static void lanefs_icache_publish(struct inode *inode)
{
	/* Make the VFS see a hashed inode without putting it into the hash. */
	inode_fake_hash(inode);
	lanefs_inode_state_add(inode, I_NEW);
}

/*
 * Makes a new inode known by its number, locked. -EBUSY: there is another one of that number. In a
 * handle.
 */
int lanefs_icache_add(struct inode *inode)
{
	struct lanefs_domain *domain = lanefs_domain_of(inode);

	if (!lanefs_own_icache(inode->i_sb))
		return insert_inode_locked(inode);
	if (lanefs_icache_lives(domain, inode->i_ino))
		return -EBUSY;
	lanefs_icache_publish(inode);
	xa_store(lanefs_icache_of(domain, inode->i_ino), lanefs_ino_index(inode->i_ino), inode,
		 GFP_NOFS | __GFP_NOFAIL);
	return 0;
}

/* NULL: it is not in memory; ERR_PTR(-EAGAIN): it is leaving. */
static struct inode *lanefs_icache_grab(struct lanefs_domain *domain, u64 ino)
{
	struct inode *inode, *grabbed = NULL;

	rcu_read_lock();
	inode = xa_load(lanefs_icache_of(domain, ino), lanefs_ino_index(ino));
	if (inode)
		grabbed = igrab(inode);
	rcu_read_unlock();
	return inode && !grabbed ? ERR_PTR(-EAGAIN) : grabbed;
}

/* -EBUSY: there is another one of that number. */
static int lanefs_icache_insert(struct lanefs_domain *domain, struct inode *inode)
{
	struct inode *other = xa_cmpxchg(lanefs_icache_of(domain, inode->i_ino),
					 lanefs_ino_index(inode->i_ino), NULL, inode, GFP_NOFS);

	return xa_is_err(other) ? xa_err(other) : other ? -EBUSY : 0;
}

/*
 * If several tasks want to read the inode in, one gets it. NULL: another task was faster. If the
 * number may be unused, that is checked first and stays true until the inode is in its place: so it
 * never blocks a new inode that has taken the number and is about to be added.
 */
static struct inode *lanefs_icache_fresh(struct super_block *sb, u64 ino, s64 generation)
{
	struct lanefs_domain *domain = lanefs_domain_of_ino(LANEFS_SB(sb), ino);
	struct inode *inode = lanefs_icache_new(sb);
	struct lanefs_shard *shard;
	int err;

	if (!inode)
		return ERR_PTR(-ENOMEM);
	inode->i_ino = ino;
	LANEFS_I(inode)->li_domain = domain->d_id;
	lanefs_icache_publish(inode);
	if (generation == LANEFS_GENERATION_NAMED) {
		err = lanefs_icache_insert(domain, inode);
	} else {
		shard = lanefs_shard_of(domain, lanefs_ino_index(ino));
		mutex_lock(&shard->sh_mutex);
		err = lanefs_inode_confirm(domain, ino, generation);
		if (!err)
			err = lanefs_icache_insert(domain, inode);
		mutex_unlock(&shard->sh_mutex);
	}
	if (!err)
		return inode;
	/* Nobody has seen it. */
	__destroy_inode(inode);
	lanefs_free_inode(inode);
	return err == -EBUSY ? NULL : ERR_PTR(err);
}

/*
 * The same where the VFS keeps them. A new one of that number waits in its handle until the inode
 * is taken away again, so between the two nothing waits for a handle.
 */
static struct inode *lanefs_icache_get_vfs(struct super_block *sb, u64 ino, s64 generation)
{
	struct lanefs_domain *domain = lanefs_domain_of_ino(LANEFS_SB(sb), ino);
	struct lanefs_shard *shard = lanefs_shard_of(domain, lanefs_ino_index(ino));
	struct inode *inode = iget_locked(sb, ino);
	int err;

	if (generation == LANEFS_GENERATION_NAMED)
		return inode ?: ERR_PTR(-ENOMEM);
	if (inode && !(lanefs_inode_state(inode) & I_NEW))
		return inode;
	/* No inode: there is no memory, or one is being created and cannot be what was asked for. */
	mutex_lock(&shard->sh_mutex);
	err = lanefs_inode_confirm(domain, ino, generation);
	mutex_unlock(&shard->sh_mutex);
	if (inode && !err)
		return inode;
	if (inode)
		iget_failed(inode);
	return ERR_PTR(err ?: -ENOMEM);
}

/*
 * The inode of that number: as it is in memory, whatever its generation, or new (I_NEW), to be read
 * in and unlocked. -ESTALE: there is none of that generation with a link. No handle is held.
 */
struct inode *lanefs_icache_get(struct super_block *sb, u64 ino, s64 generation)
{
	struct lanefs_domain *domain = lanefs_domain_of_ino(LANEFS_SB(sb), ino);
	struct inode *inode;

	if (!lanefs_own_icache(sb))
		return lanefs_icache_get_vfs(sb, ino, generation);
	for (;;) {
		wait_event(domain->d_inode_wait,
			   (inode = lanefs_icache_grab(domain, ino)) != ERR_PTR(-EAGAIN));
		if (!inode) {
			inode = lanefs_icache_fresh(sb, ino, generation);
			if (inode)
				return inode;
			continue;
		}
		lanefs_wait_on_new_inode(inode);
		if (!inode_unhashed(inode))
			return inode;
		/* It could not be read, or its creation failed. */
		iput(inode);
	}
}

static void lanefs_icache_remove(struct inode *inode)
{
	struct lanefs_domain *domain = lanefs_domain_of(inode);

	/* The number may be another's already. */
	xa_cmpxchg(lanefs_icache_of(domain, inode->i_ino), lanefs_ino_index(inode->i_ino), inode,
		   NULL, 0);
	if (wq_has_sleeper(&domain->d_inode_wait))
		wake_up_all(&domain->d_inode_wait);
}

/**
 * lanefs_icache_forget() - hide an inode that failed before it was unlocked
 * @inode: the inode, which its last reference ends
 *
 * Context: Within or outside of handles; does not sleep.
 */
void lanefs_icache_forget(struct inode *inode)
{
	if (!lanefs_own_icache(inode->i_sb)) {
		remove_inode_hash(inode);
		return;
	}
	lanefs_icache_remove(inode);
	hlist_del_init(&inode->i_hash);
}

/**
 * lanefs_icache_evict() - take an inode out of sh_inodes at the end of its eviction
 * @inode: the inode
 *
 * Tasks that wait for its number go on, and it counts no longer as one to be deleted. Does nothing
 * with ablate=inodes, where the VFS keeps inodes.
 *
 * Context: The last step of evict_inode(); does not sleep.
 */
void lanefs_icache_evict(struct inode *inode)
{
	if (!lanefs_own_icache(inode->i_sb))
		return;
	lanefs_icache_remove(inode);
	/* The superblock does not count it among those without links. */
	lanefs_set_links(inode, 1);
}

/* The first inode from *index on that stays, with a reference. */
static struct inode *lanefs_icache_next(struct lanefs_shard *shard, unsigned long *index)
{
	struct inode *inode;

	rcu_read_lock();
	while ((inode = xa_find(&shard->sh_inodes, index, ULONG_MAX, XA_PRESENT)) && !igrab(inode))
		++*index;
	rcu_read_unlock();
	return inode;
}

static void lanefs_icache_list_shard(struct lanefs_shard *shard)
{
	struct inode *inode;
	unsigned long index;

	for (index = 0; (inode = lanefs_icache_next(shard, &index)); index++) {
		inode_sb_list_add(inode);
		iput(inode);
		cond_resched();
	}
}

/**
 * lanefs_icache_list() - put all inodes in memory on the superblock's list
 * @sbi: the file system
 *
 * The VFS looks for them there.
 *
 * Context: Before the VFS evicts all of them, when nobody adds any; may sleep.
 */
void lanefs_icache_list(struct lanefs_sb *sbi)
{
	unsigned int j;
	u32 i;

	if (!lanefs_own_icache(sbi->s_vfs))
		return;
	for (i = 0; i < sbi->s_domains; i++)
		for (j = 0; j < lanefs_shards(sbi->s_domain[i]); j++)
			lanefs_icache_list_shard(&sbi->s_domain[i]->d_shards[j]);
}

/**
 * lanefs_set_links() - set the number of an inode's links
 * @inode: the inode
 * @links: so many from now on
 *
 * The VFS counts inodes without any for the whole superblock (s_remove_count); lanes count their
 * own.
 *
 * Context: As set_nlink().
 */
void lanefs_set_links(struct inode *inode, unsigned int links)
{
	struct lanefs_domain *domain = lanefs_domain_of(inode);

	if (!lanefs_own_icache(inode->i_sb)) {
		set_nlink(inode, links);
		return;
	}
	if (inode->i_nlink && !links)
		percpu_counter_inc(&domain->d_unlinked);
	else if (!inode->i_nlink && links)
		percpu_counter_dec(&domain->d_unlinked);
	inode->__i_nlink = links;
}

/**
 * lanefs_any_unlinked() - tell whether inodes in memory are to be deleted when they are closed
 * @sbi: the file system
 *
 * Nobody could do that read-only. With ablate=inodes the VFS counts them, and none are found
 * here.
 *
 * Context: Any.
 * Return: whether there are some.
 */
bool lanefs_any_unlinked(const struct lanefs_sb *sbi)
{
	u32 i;

	for (i = 0; i < sbi->s_domains; i++)
		if (percpu_counter_sum(&sbi->s_domain[i]->d_unlinked))
			return true;
	return false;
}
