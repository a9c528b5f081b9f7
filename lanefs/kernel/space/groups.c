// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bitmaps of a domain's groups of blocks, in memory.
 *
 * A group's bitmap comes into memory when blocks of it are first taken or freed (alloc.c), and leaves
 * it when memory is short and both bitmaps say the same. The group is counted then, if it was not in
 * the background (count.c): until then it has no free blocks.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "space/space.h"

/* Whether the bitmap leaves the domain's own blocks, which must not be given away. */
static bool lanefs_group_sound(struct lanefs_domain *domain, u32 number, const void *bits)
{
	u64 first = (u64)number * LANEFS_BITMAP_BITS;
	u64 own = domain->d_layout.data - domain->d_layout.base;
	u32 count = own > first ? min_t(u64, own - first, LANEFS_BITMAP_BITS) : 0;

	if (find_next_zero_bit_le(bits, count, 0) >= count)
		return true;
	lanefs_error(domain->d_sbi, "domain %u: the block bitmap marks metadata blocks as free",
		     domain->d_id);
	return false;
}

/* Under g_lock: so many blocks are free, if that was not known. Whether it was not. */
static bool lanefs_group_count(struct lanefs_domain *domain, u32 number, const void *bits, u32 free)
{
	struct lanefs_group *group = &domain->d_groups[number];

	lockdep_assert_held(&group->g_lock);
	if (group->g_counted)
		return false;
	atomic64_inc(&domain->d_returns);
	WRITE_ONCE(group->g_free, free);
	lanefs_segments_see(domain, number, bits);
	WRITE_ONCE(group->g_counted, true);
	return true;
}

/* Blocks of a group that was counted can be taken. */
static void lanefs_group_open(struct lanefs_domain *domain, u32 free)
{
	lanefs_give_free(domain, free);
	lanefs_count_progress(domain);
}

bool lanefs_group_known(struct lanefs_domain *domain, u32 number)
{
	return READ_ONCE(domain->d_groups[number].g_counted);
}

static int lanefs_group_see(struct lanefs_domain *domain, u32 number, const void *bits)
{
	struct lanefs_group *group = &domain->d_groups[number];
	u32 free = lanefs_zero_bits(bits, group->g_bits);
	bool fresh;

	if (!lanefs_group_sound(domain, number, bits))
		return -EUCLEAN;
	spin_lock(&group->g_lock);
	fresh = lanefs_group_count(domain, number, bits, free);
	spin_unlock(&group->g_lock);
	if (fresh)
		lanefs_group_open(domain, free);
	return 0;
}

/**
 * lanefs_groups_count() - count the free blocks of some groups
 * @domain: the domain
 *
 * Context: In the background count (count.c) alone; takes g_lock, and no handle.
 * Return: 1: there are more; 0: those were all; or the error of lanefs_count_next().
 */
int lanefs_groups_count(struct lanefs_domain *domain)
{
	const struct lanefs_bitmap bitmap = {
		.first = domain->d_layout.bbitmap,
		.blocks = domain->d_ngroups,
		.magic = LANEFS_MAGIC_BBITMAP,
		.known = lanefs_group_known,
		.see = lanefs_group_see,
	};

	return lanefs_count_next(domain, &bitmap, &domain->d_count_groups);
}

/**
 * lanefs_groups_start() - make the groups of a domain, none of which is counted, and its segments
 * @domain: the domain
 *
 * After an error lanefs_groups_stop() is to follow.
 *
 * Context: At the mount, for many domains at once.
 * Return: 0 or -ENOMEM.
 */
int lanefs_groups_start(struct lanefs_domain *domain)
{
	u64 blocks = domain->d_layout.end - domain->d_layout.base;
	struct lanefs_group *group;
	u32 i;

	domain->d_groups = kvcalloc(domain->d_layout.bbitmap_blocks, sizeof(*domain->d_groups),
				    GFP_KERNEL);
	if (!domain->d_groups)
		return -ENOMEM;
	domain->d_ngroups = domain->d_layout.bbitmap_blocks;
	for (i = 0; i < domain->d_ngroups; i++) {
		group = &domain->d_groups[i];
		spin_lock_init(&group->g_lock);
		group->g_bits = min_t(u64, blocks - (u64)i * LANEFS_BITMAP_BITS,
				      LANEFS_BITMAP_BITS);
	}
	lanefs_space_start(domain);
	return lanefs_segments_start(domain);
}

/**
 * lanefs_groups_stop() - free the groups and segments of a domain, if there are any
 * @domain: the domain
 *
 * Context: At the end of the mount, before lanefs_journal_free(): it puts blocks.
 */
void lanefs_groups_stop(struct lanefs_domain *domain)
{
	u32 i;

	for (i = 0; domain->d_groups && i < domain->d_ngroups; i++) {
		kfree(domain->d_groups[i].g_busy);
		lanefs_buf_put(domain->d_groups[i].g_buf);
	}
	kvfree(domain->d_groups);
	domain->d_groups = NULL;
	lanefs_segments_stop(domain);
}

/*
 * The group's bitmap comes into memory from its block, which was read. It has not changed since it
 * was counted, or since it left memory: who takes or frees blocks keeps it there. After an error the
 * block is put.
 */
static int lanefs_group_enter(struct lanefs_domain *domain, u32 number, struct lanefs_buf *buf)
{
	struct lanefs_group *group = &domain->d_groups[number];
	const void *bits = lanefs_buf_bits(buf);
	u32 free = lanefs_zero_bits(bits, group->g_bits);
	unsigned long *busy;
	bool fresh, changed;

	lockdep_assert_held(&domain->d_bitmaps_mutex);
	if (!lanefs_group_sound(domain, number, bits)) {
		lanefs_buf_put(buf);
		return -EUCLEAN;
	}
	busy = kmemdup(bits, LANEFS_BODY_SIZE, GFP_NOFS | __GFP_NOFAIL | __GFP_RECLAIMABLE);
	spin_lock(&group->g_lock);
	fresh = lanefs_group_count(domain, number, bits, free);
	changed = group->g_free != free;
	if (!changed) {
		group->g_buf = buf;
		WRITE_ONCE(group->g_busy, busy);
	}
	spin_unlock(&group->g_lock);
	if (changed) {
		lanefs_error(domain->d_sbi, "domain %u: the bitmap in block %llu has changed on the device",
			     domain->d_id, buf->b_block);
		kfree(busy);
		lanefs_buf_put(buf);
		return -EUCLEAN;
	}
	if (fresh)
		lanefs_group_open(domain, free);
	list_add_tail(&group->g_node, &domain->d_loaded);
	domain->d_nloaded++;
	return 0;
}

/* Reads the group's bitmap, if it is not in memory. Who needs another one does not wait for that. */
int lanefs_group_load(struct lanefs_domain *domain, u32 number)
{
	struct lanefs_buf *buf;
	int err = 0;

	buf = lanefs_buf_read(domain->d_journal, domain->d_layout.bbitmap + number,
			      LANEFS_MAGIC_BBITMAP, domain->d_id);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	mutex_lock(&domain->d_bitmaps_mutex);
	if (READ_ONCE(domain->d_groups[number].g_busy))
		lanefs_buf_put(buf);
	else
		err = lanefs_group_enter(domain, number, buf);
	mutex_unlock(&domain->d_bitmaps_mutex);
	return err;
}

/* Locks the group with its bitmap in memory, for which it may wait. After an error it is not locked. */
int lanefs_group_lock(struct lanefs_domain *domain, u32 number)
{
	struct lanefs_group *group = &domain->d_groups[number];
	int err;

	spin_lock(&group->g_lock);
	while (!group->g_busy) {
		spin_unlock(&group->g_lock);
		err = lanefs_group_load(domain, number);
		if (err)
			return err;
		spin_lock(&group->g_lock);
	}
	group->g_wanted = true;
	return 0;
}

/* Has the group's bitmap in memory; if it is read, then for a while, as it is wanted. */
void lanefs_group_prepare(struct lanefs_domain *domain, u32 number)
{
	struct lanefs_group *group = &domain->d_groups[number];

	if (!READ_ONCE(group->g_busy) && !lanefs_group_lock(domain, number))
		spin_unlock(&group->g_lock);
}

/**
 * lanefs_free_prepare() - have the bitmaps in memory that freeing these blocks changes
 * @domain: whose blocks
 * @start: the first one
 * @count: how many, at least one
 *
 * The task that needs a bitmap that cannot be read gets the error.
 *
 * Context: Before a handle, as a commit would wait for the reads.
 */
void lanefs_free_prepare(struct lanefs_domain *domain, u64 start, u64 count)
{
	u32 number;

	for (number = lanefs_group_of(domain, start);
	     number <= lanefs_group_of(domain, start + count - 1); number++)
		lanefs_group_prepare(domain, number);
}

/**
 * lanefs_free_prepared() - tell whether freeing these blocks needs no read
 * @domain: whose blocks
 * @start: the first one
 * @count: how many, at least one
 *
 * Context: Any.
 * Return: whether it needs none, for the moment: reclaim may take a bitmap away.
 */
bool lanefs_free_prepared(const struct lanefs_domain *domain, u64 start, u64 count)
{
	u32 number;

	for (number = lanefs_group_of(domain, start);
	     number <= lanefs_group_of(domain, start + count - 1); number++)
		if (!READ_ONCE(domain->d_groups[number].g_busy))
			return false;
	return true;
}

/* Takes the group's bitmap out of memory if nothing is known there that the block does not say. */
static bool lanefs_group_unload(struct lanefs_domain *domain, struct lanefs_group *group)
{
	struct lanefs_buf *buf = NULL;
	unsigned long *busy = NULL;

	lockdep_assert_held(&domain->d_bitmaps_mutex);
	spin_lock(&group->g_lock);
	if (!group->g_differing && !group->g_wanted) {
		busy = group->g_busy;
		buf = group->g_buf;
		WRITE_ONCE(group->g_busy, NULL);
		group->g_buf = NULL;
	}
	group->g_wanted = false;
	spin_unlock(&group->g_lock);
	if (!busy)
		return false;
	list_del(&group->g_node);
	domain->d_nloaded--;
	kfree(busy);
	lanefs_buf_put(buf);
	return true;
}

/**
 * lanefs_groups_cached() - count the block bitmaps in memory (count_objects)
 * @shrinker: the mount's
 * @sc: not used
 *
 * Context: In reclaim.
 * Return: their number, or SHRINK_EMPTY.
 */
unsigned long lanefs_groups_cached(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct lanefs_sb *sbi = lanefs_shrinker_private(shrinker);
	unsigned long count = 0;
	u32 i;

	for (i = 0; i < sbi->s_domains; i++)
		count += READ_ONCE(sbi->s_domain[i]->d_nloaded);
	return count ?: SHRINK_EMPTY;
}

/**
 * lanefs_groups_scan() - take block bitmaps out of memory (scan_objects)
 * @shrinker: the mount's
 * @sc: how many to look at, all domains together
 *
 * One that differs from its block, or was wanted since the last look, stays.
 *
 * Context: In reclaim, also from within a handle; tries d_bitmaps_mutex, and takes g_lock.
 * Return: how many were freed.
 */
unsigned long lanefs_groups_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct lanefs_sb *sbi = lanefs_shrinker_private(shrinker);
	unsigned long each = sc->nr_to_scan / sbi->s_domains + 1, freed = 0, left;
	struct lanefs_domain *domain;
	struct lanefs_group *group;
	u32 i;

	for (i = 0; i < sbi->s_domains; i++) {
		domain = sbi->s_domain[i];
		/* Who loads a bitmap may have come here for memory. */
		if (!mutex_trylock(&domain->d_bitmaps_mutex))
			continue;
		for (left = min(each, domain->d_nloaded); left; left--) {
			group = list_first_entry(&domain->d_loaded, struct lanefs_group, g_node);
			list_move_tail(&group->g_node, &domain->d_loaded);
			freed += lanefs_group_unload(domain, group);
		}
		mutex_unlock(&domain->d_bitmaps_mutex);
	}
	return freed;
}
