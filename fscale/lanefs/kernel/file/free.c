// SPDX-License-Identifier: GPL-2.0-only
/* Taking blocks away from a file: truncation, deletion and holes punched. */
#include <linux/sched.h>

#include "file/file.h"

#define LANEFS_FREE_BLOCKS	LANEFS_BITMAP_BITS	/* of one extent, in one transaction */
#define LANEFS_FREE_EXTENTS	8

/*
 * Whether the handle can log what one extent more may change in the inode's domain: its leaf and the
 * nodes above, the bitmaps of those and of itself, and a block of revokes. Trees that are all path
 * need it for each.
 */
static bool lanefs_free_more(const struct lanefs_handle *h, struct inode *inode)
{
	int part = lanefs_handle_part(h, lanefs_journal_of(inode));

	return h->h_part[part].used + 2 * LANEFS_MAX_LEVEL + 5 <= h->h_part[part].credits;
}

/* Frees some of what lies from *at to `end`, as long as it is in the handle's domains. */
static int lanefs_free_some(struct lanefs_handle *h, struct inode *inode, u64 *at, u64 end)
{
	struct lanefs_domain *domain;
	struct lanefs_map map;
	int err, extents = 0;
	u64 count, skip;

	while (*at < end && extents < LANEFS_FREE_EXTENTS &&
	       (!extents || lanefs_free_more(h, inode))) {
		err = lanefs_map_find(inode, *at, &map);
		if (err)
			return err;
		count = min(map.length, end - *at);
		skip = 0;
		if (map.block) {
			domain = lanefs_handle_domain(h, map.block);
			if (!domain)
				return 0;
			/* Cut a long extent from its end: cutting its middle would need another record. */
			if (count == map.length)
				skip = count - min_t(u64, count, LANEFS_FREE_BLOCKS);
			count = min_t(u64, count - skip, LANEFS_FREE_BLOCKS);
			err = lanefs_map_remove(h, inode, *at + skip, count);
			if (!err)
				err = lanefs_free_blocks(h, domain, map.block + skip, count, false);
			if (err)
				return err;
			lanefs_add_blocks(inode, -(s64)count);
			extents++;
		}
		if (!skip)
			*at += count;
	}
	return 0;
}

/* Moves *at to the next block that is mapped, at most to `end`; *block is where it lies. */
static int lanefs_next_mapped(struct inode *inode, u64 *at, u64 end, u64 *block)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_map map = {};
	int err = 0;

	down_read(&li->li_tree_sem);
	while (*at < end) {
		err = lanefs_map_find(inode, *at, &map);
		if (err || map.block)
			break;
		*at = min(*at + map.length, end);
	}
	up_read(&li->li_tree_sem);
	*block = map.block;
	return err;
}

/* A handle to free a block of the inode, and others of the same domain. */
static int lanefs_free_begin(struct lanefs_handle *h, const struct inode *inode, u64 block)
{
	struct lanefs_sb *sbi = LANEFS_SB(inode->i_sb);
	u32 domains[2] = { LANEFS_I(inode)->li_domain, lanefs_block_domain(sbi, block)->d_id };

	return lanefs_begin(h, sbi, LANEFS_CREDITS, domains, 2);
}

/* With the tree locked: frees some of the blocks from *from on, and logs the inode. */
static int lanefs_free_logged(struct lanefs_handle *h, struct inode *inode, u64 *from, u64 to)
{
	int err = lanefs_free_some(h, inode, from, to);

	lockdep_assert_held_write(&LANEFS_I(inode)->li_tree_sem);
	if (err)
		lanefs_abort(h->h_sbi);
	lanefs_inode_log(h, inode, true);
	return err;
}

/* In as many transactions as it takes; `cuts`: one may need blocks for the tree. */
static int lanefs_free_all(struct inode *inode, u64 from, u64 to, bool cuts)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_handle h;
	u64 block;
	int err;

	for (;;) {
		err = lanefs_next_mapped(inode, &from, to, &block);
		if (err || from >= to)
			return err;
		err = lanefs_free_begin(&h, inode, block);
		if (err)
			return err;
		down_write(&li->li_tree_sem);
		if (cuts)
			err = lanefs_reserve(&h, lanefs_domain_of(inode),
					     lanefs_tree_blocks_needed(inode),
					     LANEFS_FOR_COMPLETION);
		if (!err)
			err = lanefs_free_logged(&h, inode, &from, to);
		up_write(&li->li_tree_sem);
		lanefs_end(&h);
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
 * Frees the blocks behind the last one that the file's size has. The inode is locked. After an error
 * a later close tries again.
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

/*
 * Cuts the file on disk to `size`, and takes its blocks behind that away: in one transaction, or
 * else it is an orphan until it has lost them. One without links is an orphan anyhow. The page cache
 * is cut already.
 */
int lanefs_truncate_blocks(struct inode *inode, loff_t size)
{
	u64 from = DIV_ROUND_UP_ULL(size, LANEFS_BLOCK_SIZE), block;
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_handle h;
	int err;

	err = lanefs_next_mapped(inode, &from, LANEFS_MAX_FILE_BLOCKS, &block);
	if (err || from >= LANEFS_MAX_FILE_BLOCKS)
		return err ?: lanefs_log_size(inode, size);
	err = lanefs_free_begin(&h, inode, block);
	if (err)
		return err;
	down_write(&li->li_tree_sem);
	li->li_disk_size = size;
	err = lanefs_free_logged(&h, inode, &from, LANEFS_MAX_FILE_BLOCKS);
	lanefs_orphan(&h, inode, from < LANEFS_MAX_FILE_BLOCKS || !inode->i_nlink);
	up_write(&li->li_tree_sem);
	lanefs_end(&h);
	if (err || from >= LANEFS_MAX_FILE_BLOCKS)
		return err;
	err = lanefs_free_range(inode, from, LANEFS_MAX_FILE_BLOCKS);
	return err ?: lanefs_log_size(inode, size);
}
