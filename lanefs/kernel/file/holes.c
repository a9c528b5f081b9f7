// SPDX-License-Identifier: GPL-2.0-only
/* Blocks for holes of a file: which are mapped, and how many more where the file grows. */
#include <linux/mm.h>

#include "file/file.h"

#define LANEFS_PREALLOC_FROM	16	/* logical block; smaller files are given what they use */
#define LANEFS_PREALLOC_MAX	1024	/* blocks */

/*
 * With the tree locked: how many blocks to preallocate behind a write of `count` that makes a file
 * grow.
 */
u64 lanefs_prealloc_blocks(const struct inode *inode, const struct lanefs_map *map, u64 count)
{
	u64 end = DIV_ROUND_UP_ULL(i_size_read(inode), LANEFS_BLOCK_SIZE);

	lockdep_assert_held(&LANEFS_I(inode)->li_tree_sem);
	/* Not where there are blocks further on, nor when nobody is left to give them back. */
	if (lanefs_is_log(inode->i_sb) || map->logical > end || map->logical + count < end ||
	    LANEFS_I(inode)->li_fallocating || !atomic_read(&LANEFS_I(inode)->li_writers) ||
	    map->logical + map->length < LANEFS_MAX_FILE_BLOCKS ||
	    map->logical < LANEFS_PREALLOC_FROM)
		return 0;
	return min_t(u64, map->logical / 2, LANEFS_PREALLOC_MAX);
}

/* With the tree locked: maps a part of the hole that begins at map->logical. */
int lanefs_fill_hole(struct lanefs_handle *h, struct inode *inode, struct lanefs_domain *domain,
		     u64 want, struct lanefs_map *map)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	bool log = lanefs_is_log(inode->i_sb);
	u32 count;
	int err;

	lockdep_assert_held_write(&li->li_tree_sem);
	/* More owners would be more than the handle's credits are for. */
	if (log)
		want = min_t(u64, want, LANEFS_SEGMENT_BLOCKS);
	err = lanefs_alloc_blocks(h, domain, li->li_goal, want, &map->block, &count);
	if (err)
		return err;
	map->length = count;
	map->unwritten = true;
	err = lanefs_map_insert(h, inode, map);
	if (!err && log)
		err = lanefs_owners_set(h, domain, map->block, count, inode->i_ino, map->logical);
	if (err) {
		lanefs_free_blocks(h, domain, map->block, count, false);
		return err;
	}
	li->li_goal = map->block + count;
	lanefs_add_blocks(inode, count);
	lanefs_inode_journal(h, inode, true);
	return 0;
}
