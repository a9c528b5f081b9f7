// SPDX-License-Identifier: GPL-2.0-only
/* Taking blocks away from a file: truncation, deletion and holes punched. */
#include <linux/sched.h>

#include "file/file.h"

#define LANEFS_FREE_BLOCKS	LANEFS_BITMAP_BITS	/* of one extent, in one transaction */
#define LANEFS_FREE_EXTENTS	8

/*
 * Whether the handle can journal what one extent more may change in the inode's domain: its leaf and the
 * nodes above, the bitmaps of those and of itself, and a block of revokes. Trees that are all path
 * need it for each.
 */
static bool lanefs_free_more(const struct lanefs_handle *h, struct inode *inode)
{
	int part = lanefs_handle_part(h, lanefs_journal_of(inode));

	return h->h_part[part].used + 2 * LANEFS_MAX_LEVEL + 5 <= h->h_part[part].credits;
}

/*
 * Leaves of a piece of an extent before `end` what one handle may free. Cuts a long extent from its
 * end: cutting its middle would need another record. How many blocks come before it.
 */
static u64 lanefs_free_clip(struct lanefs_map *map, u64 end)
{
	u64 count = min(map->length, end - map->logical), skip = 0;

	if (count == map->length)
		skip = count - min_t(u64, count, LANEFS_FREE_BLOCKS);
	map->logical += skip;
	map->block += skip;
	map->length = min_t(u64, count - skip, LANEFS_FREE_BLOCKS);
	return skip;
}

/* Frees some of what lies from *at to `end`, as long as it is in the handle's domains. */
static int lanefs_free_some(struct lanefs_handle *h, struct inode *inode, u64 *at, u64 end)
{
	struct lanefs_domain *domain;
	struct lanefs_map map;
	int err, extents = 0;
	u64 skip;

	while (*at < end && extents < LANEFS_FREE_EXTENTS &&
	       (!extents || lanefs_free_more(h, inode))) {
		err = lanefs_map_find(inode, *at, &map);
		if (err)
			return err;
		skip = 0;
		if (map.block) {
			domain = lanefs_handle_domain(h, map.block);
			if (!domain)
				return 0;
			skip = lanefs_free_clip(&map, end);
			if (extents && !lanefs_free_prepared(domain, map.block, map.length))
				return 0;
			err = lanefs_map_remove(h, inode, map.logical, map.length);
			if (!err)
				err = lanefs_free_blocks(h, domain, map.block, map.length, false);
			if (err)
				return err;
			lanefs_add_blocks(inode, -(s64)map.length);
			extents++;
		}
		if (!skip)
			*at += min(map.length, end - *at);
	}
	return 0;
}

/* Moves *at to the next block that is mapped, at most to `end`; *map is what is there. */
static int lanefs_next_mapped(struct inode *inode, u64 *at, u64 end, struct lanefs_map *map)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	int err = 0;

	down_read(&li->li_tree_sem);
	while (*at < end) {
		err = lanefs_map_find(inode, *at, map);
		if (err || map->block)
			break;
		*at = min(*at + map->length, end);
	}
	up_read(&li->li_tree_sem);
	return err;
}

/* A handle to free what is mapped there before `end`, and other blocks of the same domain. */
static int lanefs_free_begin(struct lanefs_handle *h, const struct inode *inode,
			     struct lanefs_map *map, u64 end)
{
	struct lanefs_sb *sbi = LANEFS_SB(inode->i_sb);
	struct lanefs_domain *domain = lanefs_block_domain(sbi, map->block);
	u32 domains[2] = { LANEFS_I(inode)->li_domain, domain->d_id };

	lanefs_free_clip(map, end);
	lanefs_free_prepare(domain, map->block, map->length);
	return lanefs_handle_start(h, sbi, LANEFS_CREDITS, domains, 2);
}

/* With the tree locked: frees some of the blocks from *from on, and journals the inode. */
static int lanefs_free_journaled(struct lanefs_handle *h, struct inode *inode, u64 *from, u64 to)
{
	int err = lanefs_free_some(h, inode, from, to);

	lockdep_assert_held_write(&LANEFS_I(inode)->li_tree_sem);
	if (err)
		lanefs_abort(h->h_sbi);
	lanefs_inode_journal(h, inode, true);
	return err;
}

/* In as many transactions as it takes; `cuts`: one may need blocks for the tree. */
static int lanefs_free_all(struct inode *inode, u64 from, u64 to, bool cuts)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_handle h;
	struct lanefs_map map;
	int err;

	for (;;) {
		err = lanefs_next_mapped(inode, &from, to, &map);
		if (err || from >= to)
			return err;
		err = lanefs_free_begin(&h, inode, &map, to);
		if (err)
			return err;
		down_write(&li->li_tree_sem);
		if (cuts)
			err = lanefs_reserve(&h, lanefs_domain_of(inode),
					     lanefs_tree_blocks_needed(inode),
					     LANEFS_FOR_COMPLETION);
		if (!err)
			err = lanefs_free_journaled(&h, inode, &from, to);
		up_write(&li->li_tree_sem);
		lanefs_handle_stop(&h);
		if (err)
			return err;
		cond_resched();
	}
}

/*
 * Frees the file's blocks from logical block `from` to before `to`. Up to LANEFS_MAX_FILE_BLOCKS it
 * needs no blocks itself; -ENOSPC: a cut in the middle of an extent found none for the tree.
 */
int lanefs_free_range(struct inode *inode, u64 from, u64 to)
{
	return lanefs_free_all(inode, from, to, to < LANEFS_MAX_FILE_BLOCKS);
}

/* The same where no extent lies on either side of `to`; it needs no blocks. */
int lanefs_free_extents(struct inode *inode, u64 from, u64 to)
{
	return lanefs_free_all(inode, from, to, false);
}

/*
 * Frees the blocks behind the last one that the file's size has. The inode is locked, or nobody may
 * write yet (orphans.c). After an error a later close tries again.
 */
int lanefs_free_past_end(struct inode *inode)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	int err;

	down_write(&li->li_tree_sem);
	li->li_preallocated = false;
	up_write(&li->li_tree_sem);
	err = lanefs_free_range(inode, DIV_ROUND_UP_ULL(i_size_read(inode), LANEFS_BLOCK_SIZE),
				LANEFS_MAX_FILE_BLOCKS);
	if (err)
		lanefs_free_on_close(inode);
	return err;
}

/* The last writer to close the file frees the blocks past its end. */
void lanefs_free_on_close(struct inode *inode)
{
	struct lanefs_inode *li = LANEFS_I(inode);

	down_write(&li->li_tree_sem);
	li->li_preallocated = true;
	up_write(&li->li_tree_sem);
}

/* Journals the size of a file that has no blocks to lose. One without links is an orphan. */
int lanefs_size_journal(struct inode *inode, loff_t size)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_handle h;
	int err;

	err = lanefs_handle_start_inode(&h, inode);
	if (err)
		return err;
	lanefs_orphan(&h, inode, !inode->i_nlink);
	down_write(&li->li_tree_sem);
	li->li_disk_size = size;
	lanefs_inode_journal(&h, inode, true);
	up_write(&li->li_tree_sem);
	lanefs_handle_stop(&h);
	return 0;
}

/*
 * Cuts the file on disk to `size`, and takes its blocks behind that away: in one transaction, or
 * else it is an orphan until it has lost them. One without links is an orphan anyhow. The page cache
 * is cut already.
 */
int lanefs_truncate_blocks(struct inode *inode, loff_t size)
{
	u64 from = DIV_ROUND_UP_ULL(size, LANEFS_BLOCK_SIZE);
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_handle h;
	struct lanefs_map map;
	int err;

	err = lanefs_next_mapped(inode, &from, LANEFS_MAX_FILE_BLOCKS, &map);
	if (err || from >= LANEFS_MAX_FILE_BLOCKS)
		return err ?: lanefs_size_journal(inode, size);
	err = lanefs_free_begin(&h, inode, &map, LANEFS_MAX_FILE_BLOCKS);
	if (err)
		return err;
	down_write(&li->li_tree_sem);
	li->li_disk_size = size;
	err = lanefs_free_journaled(&h, inode, &from, LANEFS_MAX_FILE_BLOCKS);
	lanefs_orphan(&h, inode, from < LANEFS_MAX_FILE_BLOCKS || !inode->i_nlink);
	up_write(&li->li_tree_sem);
	lanefs_handle_stop(&h);
	if (err || from >= LANEFS_MAX_FILE_BLOCKS)
		return err;
	err = lanefs_free_range(inode, from, LANEFS_MAX_FILE_BLOCKS);
	return err ?: lanefs_size_journal(inode, size);
}
