// SPDX-License-Identifier: GPL-2.0-only
/*
 * Delayed allocation. A buffered write to a hole reserves blocks, and writeback converts the
 * reservation into extents as long as the dirty range. In a log a write to a written block reserves
 * one as well, and writeback takes these blocks one by one (rewrite.c). A reservation takes blocks of
 * a domain from the free count, so that accepted data finds its blocks later, and blocks of the
 * inode's own domain by which its extent map may grow.
 *
 * A reservation lasts as long as the page is dirty: it is made before the page becomes dirty, and
 * ends with the allocation, or when the page is truncated, given up, or written in place. If a page
 * may become dirty at the same time, only its lock (and, if there is no page yet, the mapping's
 * invalidate lock) shows whether the reservation is still needed.
 *
 * li_delayed has the number of the reserving domain for each logical block. li_tree_sem guards it
 * with the extent map: a block is mapped, reserved, or neither; in a log it may be both.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/writeback.h>

#include "file/file.h"

#define LANEFS_DELAY_BATCH	1024	/* blocks reserved or released without a pause */
#define LANEFS_DELAY_LOG	32	/* blocks reserved at a time, in a log */

/* The number of consecutive blocks from `at` to before `end` that one domain has reserved. */
static u64 lanefs_delalloc_run(struct lanefs_inode *li, u64 at, u64 end)
{
	XA_STATE(xas, &li->li_delayed, at);
	void *first, *entry;
	u64 run = 0;

	rcu_read_lock();
	first = xas_load(&xas);
	for (entry = first; entry && entry == first && run < end - at; entry = xas_next(&xas))
		run++;
	rcu_read_unlock();
	return run;
}

/*
 * With the tree locked: shortens the map to the part that is reserved, or that is not, if that ends
 * before `end`.
 */
void lanefs_delalloc_clip(struct inode *inode, struct lanefs_map *map, u64 end)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	unsigned long next = map->logical;

	lockdep_assert_held(&li->li_tree_sem);
	if (!lanefs_delalloc_wanted(inode, map) || !li->li_delayed_blocks)
		return;
	end = min(end, map->logical + map->length);
	if (!xa_find(&li->li_delayed, &next, end - 1, XA_PRESENT))
		return;
	map->delayed = next == map->logical;
	map->length = map->delayed ? lanefs_delalloc_run(li, map->logical, end) : next - map->logical;
}

/*
 * Blocks that the extent map may need for reserved ones, which lie in runs: where a leaf is
 * full already each run splits it, on both sides; full leaves are made of 64 extents at least; and
 * what splits above them is less than another path for each change. Blocks that are being written, and
 * not mapped yet, count as well. What replaces a part of an extent takes two records.
 */
static u64 lanefs_delalloc_map_needs(const struct inode *inode)
{
	const struct lanefs_inode *li = LANEFS_I(inode);
	u64 blocks = li->li_delayed_blocks + li->li_rewritten;
	u64 runs = li->li_delayed_runs + min(li->li_rewritten_runs, li->li_rewritten);
	u64 records = li->li_count + (lanefs_is_log(inode->i_sb) ? 2 * blocks : blocks);

	if (!blocks || (!li->li_level && records <= LANEFS_ROOT_RECORDS))
		return 0;
	return 2 * runs + blocks / 64 + 2 * (li->li_level + 3);
}

static struct lanefs_domain *lanefs_delalloc_domain(struct inode *inode, void *entry)
{
	return LANEFS_SB(inode->i_sb)->s_domain[xa_to_value(entry)];
}

static void lanefs_delalloc_release(struct lanefs_domain *domain, u64 count)
{
	/* In this order: who finds too few free blocks looks for delayed ones next. */
	lanefs_give_free(domain, count);
	lanefs_add_delayed(domain, -(s64)count);
}

static bool lanefs_delalloc_take(struct lanefs_domain *domain, u64 count,
				enum lanefs_reserve purpose)
{
	if (!lanefs_take_free(domain, count, purpose))
		return false;
	lanefs_add_delayed(domain, count);
	return true;
}

/* Gives back what was set aside for the extent map and is not needed any more. */
void lanefs_delalloc_release_excess(struct inode *inode)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	u64 needs = li->li_delayed_meta ? lanefs_delalloc_map_needs(inode) : 0;

	if (li->li_delayed_meta <= needs)
		return;
	lanefs_delalloc_release(lanefs_domain_of(inode), li->li_delayed_meta - needs);
	li->li_delayed_meta = needs;
}

/* A run of `count` reservations has ended; whether there is one before it, and one behind. */
static void lanefs_delalloc_ended(struct lanefs_inode *li, u64 count, bool before, bool behind)
{
	li->li_delayed_runs += before + behind - 1;
	WRITE_ONCE(li->li_delayed_blocks, li->li_delayed_blocks - count);
	WRITE_ONCE(li->li_map_seq, li->li_map_seq + 1);
}

/* Ends the reservations of a run, whose blocks are allocated, or released by the caller. */
static void lanefs_delalloc_forget(struct inode *inode, u64 at, u64 count)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	XA_STATE(xas, &li->li_delayed, at);
	u64 from, end = at + count;
	void *entry;

	for (from = at; from < end; from += LANEFS_DELAY_BATCH) {
		xas_set(&xas, from);
		xas_lock(&xas);
		xas_for_each(&xas, entry, min(from + LANEFS_DELAY_BATCH, end) - 1)
			xas_store(&xas, NULL);
		xas_unlock(&xas);
		cond_resched();
	}
	lanefs_delalloc_ended(li, count, at && xa_load(&li->li_delayed, at - 1),
			   xa_load(&li->li_delayed, end));
}

/*
 * Notes that a domain has reserved the blocks from `at` to before `end`, where none were. One walk
 * finds the neighbours, because an append does this for each block.
 */
static int lanefs_delalloc_note(struct lanefs_inode *li, u32 domain, u64 at, u64 end)
{
	bool alone = !li->li_delayed_blocks;
	XA_STATE(xas, &li->li_delayed, at && !alone ? at - 1 : at);
	void *before = NULL, *behind = NULL;
	u64 i;

	xas_lock(&xas);
	if (at && !alone) {
		before = xas_load(&xas);
		xas_next(&xas);
	}
	for (;;) {
		xas_store(&xas, xa_mk_value(domain));
		if (!xas_error(&xas)) {
			if (xas.xa_index == end - 1)
				break;
			xas_next(&xas);
			continue;
		}
		xas_unlock(&xas);
		if (!xas_nomem(&xas, GFP_NOFS))
			goto err;
		xas_lock(&xas);
	}
	if (!alone)
		behind = xas_next(&xas);
	xas_unlock(&xas);
	li->li_delayed_runs += 1 - !!before - !!behind;
	WRITE_ONCE(li->li_delayed_blocks, li->li_delayed_blocks + end - at);
	return 0;

err:
	for (i = at; i < xas.xa_index; i++)
		xa_erase(&li->li_delayed, i);
	return xas_error(&xas);
}

/* With the tree locked: ends the reservation of a block that is taken now; its domain, or NULL. */
struct lanefs_domain *lanefs_delalloc_use(struct inode *inode, u64 logical)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	bool alone = li->li_delayed_blocks == 1;
	XA_STATE(xas, &li->li_delayed, logical && !alone ? logical - 1 : logical);
	void *entry, *before = NULL, *behind = NULL;
	struct lanefs_domain *domain;

	lockdep_assert_held_write(&li->li_tree_sem);
	xas_lock(&xas);
	if (alone) {
		/* As often in a log: a block is written and synced. */
		entry = xas_store(&xas, NULL);
	} else {
		entry = xas_load(&xas);
		if (logical) {
			before = entry;
			entry = xas_next(&xas);
		}
		behind = xas_next(&xas);
		if (entry) {
			xas_prev(&xas);
			xas_store(&xas, NULL);
		}
	}
	xas_unlock(&xas);
	if (!entry)
		return NULL;
	lanefs_delalloc_ended(li, 1, before, behind);
	domain = lanefs_delalloc_domain(inode, entry);
	lanefs_add_delayed(domain, -1);
	return domain;
}

/* With the tree locked: the page is written without the block that may be reserved for it. */
void lanefs_delalloc_cancel(struct inode *inode, u64 logical)
{
	struct lanefs_domain *domain = lanefs_delalloc_use(inode, logical);

	if (!domain)
		return;
	lanefs_give_free(domain, 1);
	lanefs_delalloc_release_excess(inode);
}

/* With the tree locked: the handle may use the blocks set aside for the extent map; their number. */
u64 lanefs_delalloc_lend(struct lanefs_handle *h, struct inode *inode)
{
	u64 lent = LANEFS_I(inode)->li_delayed_meta;

	lockdep_assert_held_write(&LANEFS_I(inode)->li_tree_sem);
	h->h_part[lanefs_handle_part(h, lanefs_journal_of(inode))].reserved += lent;
	return lent;
}

/* Sets aside again the rest of these blocks, as far as it is still needed. */
void lanefs_delalloc_return(struct lanefs_handle *h, struct inode *inode, u64 lent)
{
	struct lanefs_domain *own = lanefs_domain_of(inode);
	int part = lanefs_handle_part(h, own->d_journal);
	u64 left = min(h->h_part[part].reserved, lent);

	h->h_part[part].reserved -= left;
	lanefs_add_delayed(own, -(s64)(lent - left));
	LANEFS_I(inode)->li_delayed_meta -= lent - left;
	lanefs_delalloc_release_excess(inode);
}

/* Reserves blocks of this domain for a range without a reservation: all of them or none. */
static int lanefs_delalloc_reserve_in(struct inode *inode, struct lanefs_domain *domain, u64 at, u64 count,
			     enum lanefs_reserve purpose)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	u64 needs, more;
	int err;

	if (!lanefs_delalloc_take(domain, count, purpose))
		return -ENOSPC;
	err = lanefs_delalloc_note(li, domain->d_id, at, at + count);
	if (err)
		goto err_note;
	needs = lanefs_delalloc_map_needs(inode);
	more = needs > li->li_delayed_meta ? needs - li->li_delayed_meta : 0;
	if (more && !lanefs_delalloc_take(lanefs_domain_of(inode), more, LANEFS_FOR_METADATA)) {
		err = -ENOSPC;
		goto err_meta;
	}
	li->li_delayed_meta += more;
	return 0;

err_meta:
	lanefs_delalloc_forget(inode, at, count);
err_note:
	lanefs_delalloc_release(domain, count);
	return err;
}

/* Reserves blocks for the beginning of such a range: of the inode's own domain, or else of the next. */
static int lanefs_delalloc_reserve_for(struct inode *inode, u64 count, enum lanefs_reserve purpose,
				       struct lanefs_map *map)
{
	struct lanefs_sb *sbi = LANEFS_SB(inode->i_sb);
	struct lanefs_domain *domain;
	int err = -ENOSPC;
	u64 some;
	u32 i;

	for (i = 0; i < sbi->s_domains && err == -ENOSPC; i++) {
		domain = sbi->s_domain[(LANEFS_I(inode)->li_domain + i) % sbi->s_domains];
		for (some = count; some; some = lanefs_has_room(domain, 1, purpose) ? some / 2 : 0) {
			err = lanefs_delalloc_reserve_in(inode, domain, map->logical, some, purpose);
			map->length = some;
			if (err != -ENOSPC)
				break;
		}
	}
	return err;
}

/* The same, of what data may have, or else of more. */
static int lanefs_delalloc_reserve_some(struct inode *inode, u64 count, struct lanefs_map *map)
{
	int err;

	/* Those of a log are undone when a page is written back meanwhile, as the map is another then. */
	count = min_t(u64, min(count, map->length),
		      lanefs_is_log(inode->i_sb) ? LANEFS_DELAY_LOG : LANEFS_DELAY_BATCH);
	err = lanefs_delalloc_reserve_for(inode, count, LANEFS_FOR_DATA, map);
	/*
	 * An overwrite in a log frees a block for each that it takes, but in another domain perhaps: the
	 * inode's own could lack blocks for the extent map then, where others have room for data.
	 */
	if (err == -ENOSPC && map->block)
		err = lanefs_delalloc_reserve_for(inode, count, LANEFS_FOR_METADATA, map);
	if (!err) {
		map->delayed = true;
		map->fresh = true;
		WRITE_ONCE(LANEFS_I(inode)->li_written, true);
	}
	return err;
}

static int lanefs_delalloc_reserve_once(struct inode *inode, u64 count, struct lanefs_map *map,
					u32 *seq)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	int err;

	down_write(&li->li_tree_sem);
	err = lanefs_map_find(inode, map->logical, map);
	if (!err && lanefs_delalloc_wanted(inode, map)) {
		lanefs_delalloc_clip(inode, map, map->logical + count);
		if (!map->delayed)
			err = lanefs_delalloc_reserve_some(inode, count, map);
	}
	*seq = li->li_map_seq;
	up_write(&li->li_tree_sem);
	return err;
}

/*
 * Ensures that blocks for a write of `count` at map->logical exist or are reserved, and sets *map to
 * them. A fault has its page locked, so its caller must flush for it.
 */
int lanefs_delalloc_reserve(struct inode *inode, u64 count, bool fault, struct lanefs_map *map, u32 *seq)
{
	struct lanefs_sb *sbi = LANEFS_SB(inode->i_sb);
	int err, retries = 0;

	/* No writeback would follow: after an abort, or an emergency remount. */
	if (READ_ONCE(sbi->s_aborted) || !READ_ONCE(sbi->s_started))
		return -EROFS;
	if (!fault)
		lanefs_space_queue(lanefs_domain_of(inode));
	err = lanefs_delalloc_reserve_once(inode, count, map, seq);
	if (err != -ENOSPC)
		return err;
	if (!fault)
		mutex_lock(&sbi->s_space_mutex);
	do {
		err = lanefs_delalloc_reserve_once(inode, count, map, seq);
	} while (err == -ENOSPC && lanefs_retry_alloc(sbi, !fault, &retries));
	if (!fault)
		mutex_unlock(&sbi->s_space_mutex);
	return err;
}

/*
 * The same for all logical blocks from `at` to before `end`, or for none. The inode is locked, and
 * lanefs_delalloc_undo() is to follow.
 */
int lanefs_delalloc_reserve_range(struct inode *inode, u64 at, u64 end)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_map map = { .logical = at };
	u64 first = at;
	int err = 0;
	u32 seq;

	for (; at < end && !err; at += map.length) {
		map.logical = at;
		down_read(&li->li_tree_sem);
		err = lanefs_map_find(inode, at, &map);
		up_read(&li->li_tree_sem);
		if (!err && lanefs_delalloc_wanted(inode, &map))
			err = lanefs_delalloc_reserve(inode, end - at, false, &map, &seq);
		err = err ?: lanefs_walk_pause();
	}
	if (err)
		lanefs_delalloc_undo(inode, first, end);
	return err;
}

/* Releases the reservations of logical blocks from `from` to before `to`, none of which is dirty. */
void lanefs_delalloc_drop(struct inode *inode, u64 from, u64 to)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	unsigned long at = from;
	void *entry;
	u64 run;

	if (from >= to || !READ_ONCE(li->li_delayed_blocks))
		return;
	down_write(&li->li_tree_sem);
	while ((entry = xa_find(&li->li_delayed, &at, to - 1, XA_PRESENT))) {
		run = lanefs_delalloc_run(li, at, to);
		lanefs_delalloc_forget(inode, at, run);
		lanefs_delalloc_release(lanefs_delalloc_domain(inode, entry), run);
	}
	lanefs_delalloc_release_excess(inode);
	up_write(&li->li_tree_sem);
}

/*
 * The same, but the reservation of a page that a fault has dirtied meanwhile stays. The inode is
 * locked.
 */
void lanefs_delalloc_undo(struct inode *inode, u64 from, u64 to)
{
	unsigned long at = from;

	if (from >= to || !xa_find(&LANEFS_I(inode)->li_delayed, &at, to - 1, XA_PRESENT))
		return;
	filemap_invalidate_lock(inode->i_mapping);
	lanefs_delalloc_undo_locked(inode, at, to);
	filemap_invalidate_unlock(inode->i_mapping);
}

/* With the mapping's invalidate lock. */
void lanefs_delalloc_undo_locked(struct inode *inode, u64 from, u64 to)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct address_space *mapping = inode->i_mapping;
	unsigned long at = from;
	struct folio *folio;

	if (from >= to)
		return;
	for (; xa_find(&li->li_delayed, &at, to - 1, XA_PRESENT); at++) {
		folio = lanefs_get_folio(mapping, at, FGP_LOCK, 0);
		if (!folio || !folio_test_dirty(folio))
			lanefs_delalloc_drop(inode, at, at + 1);
		if (folio) {
			folio_unlock(folio);
			folio_put(folio);
		}
		cond_resched();
	}
}

/* Blocks to preallocate behind a run: lanefs_prealloc_blocks(), if the file is written in order. */
static int lanefs_delalloc_prealloc(struct inode *inode, const struct lanefs_map *map, u64 run,
			      u64 *ahead)
{
	unsigned long next = map->logical + run;
	struct lanefs_map before;
	int err;

	/* Whoever opens the file to sync it does not make it grow, and a crash would keep the blocks. */
	*ahead = READ_ONCE(LANEFS_I(inode)->li_written) ? lanefs_prealloc_blocks(inode, map, run) : 0;
	if (!*ahead)
		return 0;
	err = lanefs_map_find(inode, map->logical - 1, &before);
	if (err)
		return err;
	if (!before.block || xa_find(&LANEFS_I(inode)->li_delayed, &next, ULONG_MAX, XA_PRESENT))
		*ahead = 0;
	return 0;
}

/* With the tree locked: allocates the reserved run that begins at map->logical. */
static int lanefs_delalloc_convert(struct lanefs_handle *h, struct inode *inode,
			     struct lanefs_domain *domain, struct lanefs_map *map)
{
	struct lanefs_domain *own = lanefs_domain_of(inode);
	int part = lanefs_handle_part(h, domain->d_journal);
	int own_part = lanefs_handle_part(h, own->d_journal), err;
	struct lanefs_inode *li = LANEFS_I(inode);
	u64 run = lanefs_delalloc_run(li, map->logical,
				   min(map->logical + map->length,
				       map->logical + LANEFS_BITMAP_BITS));
	u64 meta = li->li_delayed_meta, tree = lanefs_tree_room(inode), ahead, given, taken;

	lockdep_assert_held_write(&li->li_tree_sem);
	err = lanefs_delalloc_prealloc(inode, map, run, &ahead);
	if (!err && meta < tree)
		err = lanefs_reserve(h, own, tree - meta, LANEFS_FOR_COMPLETION);
	if (err)
		return err;
	if (ahead && lanefs_reserve(h, domain, ahead, LANEFS_FOR_DATA))
		ahead = 0;
	h->h_part[part].reserved += run;
	h->h_part[own_part].reserved += meta;
	given = h->h_part[part].reserved + (part != own_part ? h->h_part[own_part].reserved : 0);
	err = lanefs_fill_hole(h, inode, domain, min(run + ahead, map->length), map);
	if (err)
		return err == -ENOSPC ? -EUCLEAN : err;
	given -= h->h_part[part].reserved + (part != own_part ? h->h_part[own_part].reserved : 0);
	tree = min(given - map->length, meta);
	taken = min(map->length, run);

	/* Blocks that are still reserved are not the handle's to release. */
	h->h_part[part].reserved -= run - taken;
	h->h_part[own_part].reserved -= meta - tree;
	lanefs_add_delayed(domain, -(s64)taken);
	lanefs_add_delayed(own, -(s64)tree);
	li->li_delayed_meta -= tree;
	lanefs_delalloc_forget(inode, map->logical, taken);
	lanefs_delalloc_release_excess(inode);
	if (map->length > run)
		li->li_preallocated = true;
	return 0;
}

/* Allocates the block reserved for map->logical, if there is one, and sets *map to it. */
int lanefs_delalloc_allocate(struct inode *inode, struct lanefs_map *map, u32 *seq)
{
	struct lanefs_sb *sbi = LANEFS_SB(inode->i_sb);
	struct lanefs_inode *li = LANEFS_I(inode);
	u64 logical = map->logical;
	struct lanefs_handle h;
	u32 domains[2];
	void *entry;
	int err;

	for (;;) {
		down_read(&li->li_tree_sem);
		err = lanefs_map_find(inode, logical, map);
		entry = xa_load(&li->li_delayed, logical);
		*seq = li->li_map_seq;
		up_read(&li->li_tree_sem);
		if (err || map->block || !entry)
			return err;
		domains[0] = li->li_domain;
		domains[1] = xa_to_value(entry);
		lanefs_alloc_prepare(sbi->s_domain[domains[1]], READ_ONCE(li->li_goal));
		err = lanefs_handle_start(&h, sbi, LANEFS_CREDITS, domains, 2);
		if (err)
			return err;
		down_write(&li->li_tree_sem);
		err = lanefs_map_find(inode, logical, map);
		if (!err && !map->block && xa_load(&li->li_delayed, logical) == entry)
			err = lanefs_delalloc_convert(&h, inode, lanefs_delalloc_domain(inode, entry), map);
		*seq = li->li_map_seq;
		up_write(&li->li_tree_sem);
		if (err && err != -ENOSPC)
			lanefs_abort(sbi);
		lanefs_handle_stop(&h);
		if (err || map->block)
			return err;
	}
}

/**
 * lanefs_delalloc_check() - warn of reservations where no data waits to be written
 * @sbi: the file system
 *
 * Context: In a freeze, or at the unmount, when nobody can dirty a page. After an abort, or on a
 * read-only mount, reservations may be left.
 */
void lanefs_delalloc_check(struct lanefs_sb *sbi)
{
	if (!READ_ONCE(sbi->s_aborted) && READ_ONCE(sbi->s_started))
		WARN_ON(lanefs_delayed_anywhere(sbi));
}

/* The inode leaves memory, and its pages have. Only a deleted inode may have reservations left. */
void lanefs_delalloc_evict(struct inode *inode)
{
	struct lanefs_sb *sbi = LANEFS_SB(inode->i_sb);

	WARN_ON(READ_ONCE(LANEFS_I(inode)->li_delayed_blocks) && inode->i_nlink &&
		!READ_ONCE(sbi->s_aborted) && READ_ONCE(sbi->s_started));
	WARN_ON(LANEFS_I(inode)->li_rewritten);
	lanefs_delalloc_drop(inode, 0, LANEFS_MAX_FILE_BLOCKS);
	xa_destroy(&LANEFS_I(inode)->li_delayed);
}
