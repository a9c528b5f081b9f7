// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writeback of a log writes data out of place, and maps it only when it is on the device: a block for
 * each dirty page is taken from the CPU's stream, in memory only; when the data is on the device, one
 * handle maps the block, records its owner, and frees the block that was mapped before. A crash
 * leaves the old block or the new one.
 *
 * A page that becomes dirty over a written block has a block reserved for it (delalloc.c), as over a
 * hole. Blocks that fallocate() preallocated are unwritten, and are written in place: there is
 * nothing to lose. If such a page becomes dirty again before its first write ends, it has no
 * reservation, and takes one of the blocks kept for I/O completions.
 */
#include "file/file.h"

#define LANEFS_REWRITE_PIECES	8	/* in one handle */

/* The domain of a free block, for a page without a reservation; the block is taken. */
static struct lanefs_domain *lanefs_take_unreserved(struct inode *inode)
{
	struct lanefs_sb *sbi = LANEFS_SB(inode->i_sb);
	struct lanefs_domain *domain;
	u32 i;

	for (i = 0; i < sbi->s_domains; i++) {
		domain = sbi->s_domain[(LANEFS_I(inode)->li_domain + i) % sbi->s_domains];
		if (lanefs_take_free(domain, 1, LANEFS_FOR_COMPLETION))
			return domain;
	}
	return NULL;
}

/* -ENOSPC: there is no reservation, and no free block either. */
static int lanefs_rewrite_try(struct inode *inode, struct lanefs_map *map)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	u64 logical = map->logical, block;
	struct lanefs_domain *domain;
	int err = 0;

	down_write(&li->li_tree_sem);
	domain = lanefs_delalloc_use(inode, logical);
	if (!domain) {
		err = lanefs_map_find(inode, logical, map);
		if (err || !map->block || map->unwritten)
			goto out;
		domain = lanefs_take_unreserved(inode);
		err = domain ? 0 : -ENOSPC;
		if (err)
			goto out;
	}
	err = lanefs_stream_take_data(domain, &block);
	if (err) {
		err = lanefs_reserved_missing(domain, err);
		goto out;
	}
	if (!li->li_rewritten)
		li->li_rewritten_runs = 0;
	li->li_rewritten_runs += !li->li_rewritten || logical != li->li_rewritten_next;
	li->li_rewritten_next = logical + 1;
	li->li_rewritten++;
	*map = (struct lanefs_map){ .logical = logical, .block = block, .length = 1 };
out:
	up_write(&li->li_tree_sem);
	return err;
}

/*
 * Chooses where to write the dirty, locked page at map->logical: to a new block, which the caller
 * passes to lanefs_rewritten() later; or in place, if the mapped block is unwritten.
 */
int lanefs_rewrite(struct inode *inode, struct lanefs_map *map)
{
	u64 logical = map->logical;
	int err, retries = 0;

	do {
		map->logical = logical;
		err = lanefs_rewrite_try(inode, map);
	} while (err == -ENOSPC && lanefs_retry_alloc(LANEFS_SB(inode->i_sb), false, &retries));
	return err;
}

/* Frees blocks that could not be written or mapped. */
static void lanefs_rewrite_lost(struct inode *inode, u64 block, u64 count)
{
	struct lanefs_inode *li = LANEFS_I(inode);

	lanefs_give_blocks(lanefs_block_domain(LANEFS_SB(inode->i_sb), block), block, count);
	down_write(&li->li_tree_sem);
	li->li_rewritten -= count;
	lanefs_delalloc_release_excess(inode);
	up_write(&li->li_tree_sem);
}

/* Whether the handle can journal one piece more: a path with what splits, bitmaps and owners. */
bool lanefs_rewrite_more(const struct lanefs_handle *h)
{
	int part;

	for (part = 0; part < h->h_parts; part++)
		if (h->h_part[part].used + 2 * LANEFS_MAX_LEVEL + 10 > h->h_part[part].credits)
			return false;
	return true;
}

/*
 * With the tree locked: maps blocks of the domain, which were taken and are written, in place of
 * what is one extent, or part of one, or a hole. They are those of one block of owners.
 */
int lanefs_rewrite_map(struct lanefs_handle *h, struct inode *inode, struct lanefs_domain *domain,
		       const struct lanefs_map *map)
{
	struct lanefs_domain *own = lanefs_domain_of(inode);
	u64 has = h->h_part[lanefs_handle_part(h, own->d_journal)].reserved;
	u64 room = lanefs_tree_room(inode);
	int err;

	lockdep_assert_held_write(&LANEFS_I(inode)->li_tree_sem);
	/* If there is no block left the change may still need none. */
	if (has < room)
		(void)lanefs_reserve(h, own, room - has, LANEFS_FOR_COMPLETION);
	err = lanefs_map_replace(h, inode, map);
	if (err)
		return err;
	lanefs_use_blocks(h, domain, map->block, map->length);
	return lanefs_owners_set(h, domain, map->block, map->length, inode->i_ino, map->logical);
}

/* Written blocks: logical `at` to before `end`, at `block` on the device; some are mapped already. */
struct lanefs_rewritten {
	u64 at;
	u64 end;
	u64 block;
};

/* With the tree locked: maps a piece; -EAGAIN: the handle lacks the domain of what it replaces. */
static int lanefs_rewrite_piece(struct lanefs_handle *h, struct inode *inode,
				struct lanefs_rewritten *done)
{
	struct lanefs_domain *domain = lanefs_block_domain(h->h_sbi, done->block), *before = NULL;
	struct lanefs_map old, new;
	u64 length;
	u32 bit;
	int err;

	lockdep_assert_held_write(&LANEFS_I(inode)->li_tree_sem);
	err = lanefs_map_find(inode, done->at, &old);
	if (err)
		return err;
	if (old.block) {
		before = lanefs_handle_domain(h, old.block);
		if (!before)
			return -EAGAIN;
	}
	div_u64_rem(done->block - domain->d_layout.base, LANEFS_OWNERS, &bit);
	length = min3(old.length, done->end - done->at, (u64)LANEFS_OWNERS - bit);
	new = (struct lanefs_map){ .logical = done->at, .block = done->block, .length = length };
	err = lanefs_rewrite_map(h, inode, domain, &new);
	if (err)
		return err;
	if (before)
		err = lanefs_free_blocks(h, before, old.block, length, false);
	else
		lanefs_add_blocks(inode, length);
	done->at += length;
	done->block += length;
	LANEFS_I(inode)->li_rewritten -= length;
	return err;
}

/* Maps some of it, in one handle, and moves the size on disk to the end of that, or to `size`. */
static int lanefs_rewritten_piece(struct inode *inode, loff_t size, struct lanefs_rewritten *done)
{
	struct lanefs_sb *sbi = LANEFS_SB(inode->i_sb);
	struct lanefs_inode *li = LANEFS_I(inode);
	u64 lent;
	struct lanefs_handle h;
	struct lanefs_map old;
	u32 domains[3];
	int err, pieces;

	domains[0] = li->li_domain;
	domains[1] = lanefs_block_domain(sbi, done->block)->d_id;
	down_read(&li->li_tree_sem);
	err = lanefs_map_find(inode, done->at, &old);
	up_read(&li->li_tree_sem);
	if (err)
		return err;
	domains[2] = old.block ? lanefs_block_domain(sbi, old.block)->d_id : domains[0];
	err = lanefs_handle_start(&h, sbi, LANEFS_CREDITS, domains, 3);
	if (err)
		return err;
	down_write(&li->li_tree_sem);
	lent = lanefs_delalloc_lend(&h, inode);
	for (pieces = 0; pieces < LANEFS_REWRITE_PIECES && !err && done->at < done->end &&
	     lanefs_rewrite_more(&h); pieces++)
		err = lanefs_rewrite_piece(&h, inode, done);
	size = min_t(loff_t, i_size_read(inode),
		     min_t(loff_t, size, (loff_t)done->at << LANEFS_BLOCK_SHIFT));
	if (size > li->li_disk_size)
		li->li_disk_size = size;
	lanefs_inode_journal(&h, inode, true);
	lanefs_delalloc_return(&h, inode, lent);
	up_write(&li->li_tree_sem);
	if (err && err != -ENOSPC && err != -EAGAIN)
		lanefs_abort(sbi);
	lanefs_handle_stop(&h);
	return err == -EAGAIN ? 0 : err;
}

/* The I/O of this range to blocks from `block` on is over. */
int lanefs_rewritten(struct inode *inode, loff_t offset, size_t size, u64 block, int err)
{
	struct lanefs_rewritten done = {
		.at = offset >> LANEFS_BLOCK_SHIFT,
		.end = DIV_ROUND_UP_ULL(offset + size, LANEFS_BLOCK_SIZE),
		.block = block,
	};

	might_sleep();
	while (!err && done.at < done.end)
		err = lanefs_rewritten_piece(inode, offset + size, &done);
	if (done.at < done.end)
		lanefs_rewrite_lost(inode, done.block, done.end - done.at);
	return err;
}
