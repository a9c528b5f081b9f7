// SPDX-License-Identifier: GPL-2.0-only
/*
 * The block allocator of a domain. The bitmaps on disk are changed with the transaction; the
 * groups' bitmaps in memory also keep what was freed by a transaction that is not stable, so that
 * it is not used again too early (groups.c). How many are free is counted apart (space.c).
 */
#include <linux/slab.h>

#include "space/space.h"

/**
 * lanefs_block_domain() - find the domain of a data block
 * @sbi: the file system
 * @block: its number
 *
 * Context: Any.
 * Return: the domain, or NULL if it is no block for data.
 */
struct lanefs_domain *lanefs_block_domain(struct lanefs_sb *sbi, u64 block)
{
	struct lanefs_domain *domain;
	u64 number;

	if (block < sbi->s_domain_start)
		return NULL;
	number = div64_u64(block - sbi->s_domain_start, sbi->s_domain_blocks);
	if (number >= sbi->s_domains)
		return NULL;
	domain = sbi->s_domain[number];
	return block >= domain->d_layout.data ? domain : NULL;
}

/**
 * lanefs_handle_domain() - find the domain of a data block among those of a handle
 * @h: the handle
 * @block: its number
 *
 * Context: Any.
 * Return: the domain, or NULL if the handle has not joined it.
 */
struct lanefs_domain *lanefs_handle_domain(const struct lanefs_handle *h, u64 block)
{
	struct lanefs_domain *domain = lanefs_block_domain(h->h_sbi, block);
	int part;

	for (part = 0; domain && part < h->h_parts; part++)
		if (h->h_part[part].journal == domain->d_journal)
			return domain;
	return NULL;
}

/* Under g_lock: takes free blocks of the group. */
void lanefs_group_mark(struct lanefs_domain *domain, struct lanefs_group *group, u32 bit, u32 count)
{
	u32 i;

	lockdep_assert_held(&group->g_lock);
	for (i = 0; i < count; i++)
		__set_bit_le(bit + i, group->g_busy);
	WRITE_ONCE(group->g_free, group->g_free - count);
	group->g_differing += count;
	if (group->g_segments)
		lanefs_segments_count(domain, group, bit, count, true);
}

/*
 * Under g_lock: the first free block from bit `from` on, or g_bits; `all`: also of segments that
 * collectors empty or fill.
 */
static u32 lanefs_group_find(const struct lanefs_group *group, u32 from, bool all)
{
	u32 at, behind;

	lockdep_assert_held(&group->g_lock);
	for (at = from; at < group->g_bits; at = behind) {
		at = find_next_zero_bit_le(group->g_busy, group->g_bits, at);
		behind = all || !group->g_segments ? 0 : lanefs_segments_taken(group, at);
		if (!behind)
			return min_t(u32, at, group->g_bits);
	}
	return group->g_bits;
}

/* As lanefs_take_blocks(), from one group. */
static int lanefs_group_take(struct lanefs_domain *domain, u32 number, u32 from, u32 want,
			     bool all, u32 *bit, u32 *count)
{
	struct lanefs_group *group = &domain->d_groups[number];
	u32 at, end;
	int err;

	if (!READ_ONCE(group->g_free))
		return -ENOSPC;
	err = lanefs_group_lock(domain, number);
	if (err)
		return err;
	at = lanefs_group_find(group, from, all);
	if (at >= group->g_bits)
		at = lanefs_group_find(group, 0, all);
	if (at >= group->g_bits) {
		spin_unlock(&group->g_lock);
		return -ENOSPC;
	}
	end = min_t(u32, group->g_bits, at + want);
	if (group->g_segments)
		end = min(end, lanefs_segment_end(at));
	end = find_next_bit_le(group->g_busy, end, at + 1);
	*bit = at;
	*count = end - at;
	lanefs_group_mark(domain, group, at, *count);
	spin_unlock(&group->g_lock);
	return 0;
}

/* Blocks of one group can be taken again. */
void lanefs_group_release(struct lanefs_domain *domain, u32 number, u32 bit, u32 count)
{
	struct lanefs_group *group = &domain->d_groups[number];

	spin_lock(&group->g_lock);
	atomic64_inc(&domain->d_returns);
	WRITE_ONCE(group->g_free, group->g_free + count);
	group->g_differing -= count;
	if (group->g_segments)
		lanefs_segments_count(domain, group, bit, count, false);
	while (count--)
		__clear_bit_le(bit++, group->g_busy);
	spin_unlock(&group->g_lock);
}

/* Waits until blocks are free again that FITRIM has marked as in use (discard.c). */
static void lanefs_trim_wait(struct lanefs_domain *domain)
{
	if (mutex_is_locked(&domain->d_trim_mutex)) {
		mutex_lock(&domain->d_trim_mutex);
		mutex_unlock(&domain->d_trim_mutex);
	}
	/* Where it is not locked any more d_returns has changed. */
	smp_rmb();
}

/*
 * The first of `want` free blocks from bit `from` of group *number on, or less, in any group. Where
 * blocks became free behind the search those before it may have been taken in exchange, so that it
 * begins again.
 */
static int lanefs_groups_take(struct lanefs_domain *domain, u32 *number, u32 from, u32 want,
			      bool all, u32 *bit, u32 *count)
{
	int err, failed;
	s64 returns;
	u32 i;

	do {
		failed = -ENOSPC;
		returns = atomic64_read(&domain->d_returns);
		/* Before the groups' locks, which others took after they had counted. */
		smp_mb();
		for (i = 0; i < domain->d_ngroups; i++, from = 0) {
			err = lanefs_group_take(domain, *number, from, want, all, bit, count);
			if (!err)
				return 0;
			if (err != -ENOSPC)
				failed = err;
			*number = (*number + 1) % domain->d_ngroups;
		}
		lanefs_trim_wait(domain);
		cond_resched();
	} while (atomic64_read(&domain->d_returns) != returns);
	return failed;
}

/*
 * 1 to `want` consecutive blocks near `goal`, from those that were taken from the free ones, in
 * memory only. -ENOSPC: there are none. Another error: where there may be some, a bitmap could not
 * be read.
 */
int lanefs_take_blocks(struct lanefs_domain *domain, u64 goal, u32 want, u64 *start, u32 *count)
{
	u32 number, bit = 0, from = 0;
	int err;

	if (goal < domain->d_layout.data || goal >= domain->d_layout.end)
		goal = domain->d_layout.data;
	number = div_u64_rem(goal - domain->d_layout.base, LANEFS_BITMAP_BITS, &from);
	/* Near the goal also what was not counted; if that fails, others have as much as was taken. */
	if (!lanefs_group_known(domain, number))
		lanefs_group_load(domain, number);
	err = lanefs_groups_take(domain, &number, from, want, false, &bit, count);
	if (err && domain->d_log_start)
		err = lanefs_groups_take(domain, &number, from, want, true, &bit, count);
	if (err)
		return err;
	*start = domain->d_layout.base + (u64)number * LANEFS_BITMAP_BITS + bit;
	return 0;
}

/**
 * lanefs_use_blocks() - have blocks that were taken in memory in use on disk
 * @h: the handle
 * @domain: whose blocks
 * @start: the first one
 * @count: how many, of one group
 *
 * Context: In a handle of the domain; takes b_mutex and g_lock.
 */
void lanefs_use_blocks(struct lanefs_handle *h, struct lanefs_domain *domain, u64 start, u32 count)
{
	struct lanefs_group *group;
	u32 number, i, bit;

	number = div_u64_rem(start - domain->d_layout.base, LANEFS_BITMAP_BITS, &bit);
	group = &domain->d_groups[number];
	lanefs_buf_join(h, group->g_buf);
	spin_lock(&group->g_lock);
	for (i = 0; i < count; i++)
		__set_bit_le(bit + i, lanefs_buf_bits(group->g_buf));
	group->g_differing -= count;
	if (group->g_segments)
		lanefs_segments_used(group, bit);
	spin_unlock(&group->g_lock);
}

/* Where to look for blocks; those of a log's segments come last, as they are for data that moves. */
static u64 lanefs_alloc_goal(struct lanefs_domain *domain, u64 goal)
{
	u64 next = READ_ONCE(raw_cpu_ptr(domain->d_slots)->s_goal);

	if (domain->d_log_start)
		return next < domain->d_log_start ? next : 0;
	return goal >= domain->d_layout.data && goal < domain->d_layout.end ? goal : next;
}

/**
 * lanefs_alloc_prepare() - have the bitmap in memory that an allocation looks at first
 * @domain: to allocate from
 * @goal: near this block
 *
 * Context: Before a handle, as a commit would wait for the read.
 */
void lanefs_alloc_prepare(struct lanefs_domain *domain, u64 goal)
{
	u32 number, i;

	goal = lanefs_alloc_goal(domain, goal);
	if (goal < domain->d_layout.data || goal >= domain->d_layout.end)
		goal = domain->d_layout.data;
	number = lanefs_group_of(domain, goal);
	for (i = 0; i < domain->d_ngroups && lanefs_group_known(domain, number) &&
	     !READ_ONCE(domain->d_groups[number].g_free); i++)
		number = (number + 1) % domain->d_ngroups;
	lanefs_group_prepare(domain, number);
}

/**
 * lanefs_reserved_missing() - judge why blocks that were reserved were not found
 * @domain: whose blocks
 * @err: of lanefs_take_blocks()
 *
 * Fewer free blocks than reserved are damage. A bitmap that cannot be read has been reported.
 *
 * Context: As lanefs_error().
 * Return: -EUCLEAN for -ENOSPC, else @err.
 */
int lanefs_reserved_missing(struct lanefs_domain *domain, int err)
{
	if (err != -ENOSPC)
		return err;
	lanefs_error(domain->d_sbi, "domain %u: fewer blocks are free than reserved", domain->d_id);
	return -EUCLEAN;
}

/**
 * lanefs_alloc_blocks() - allocate consecutive blocks
 * @h: the handle
 * @domain: whose blocks
 * @goal: near this block; 0: anywhere
 * @want: at most so many
 * @start: the first one
 * @count: how many there are, at least one
 *
 * Context: In a handle of the domain that has reserved blocks; takes g_lock and b_mutex.
 * Return: 0, -ENOSPC: none is reserved, or the error of reading a bitmap; fewer than reserved are
 * damage (-EUCLEAN).
 */
int lanefs_alloc_blocks(struct lanefs_handle *h, struct lanefs_domain *domain, u64 goal, u32 want,
			u64 *start, u32 *count)
{
	int part = lanefs_handle_part(h, domain->d_journal), err;

	want = min_t(u64, want, h->h_part[part].reserved);
	if (!want)
		return -ENOSPC;
	err = lanefs_take_blocks(domain, lanefs_alloc_goal(domain, goal), want, start, count);
	if (err)
		return lanefs_reserved_missing(domain, err);
	lanefs_use_blocks(h, domain, *start, *count);
	h->h_part[part].reserved -= *count;
	WRITE_ONCE(raw_cpu_ptr(domain->d_slots)->s_goal, *start + *count);
	return 0;
}

/**
 * lanefs_buf_alloc() - allocate a block for metadata
 * @h: the handle
 * @domain: whose block
 * @magic: kind of the block
 * @owner: of the block
 *
 * What was freed has left the cache before it is used again: what is there is in use, and a
 * bitmap that calls it free is wrong.
 *
 * Context: In a handle of the domain that has reserved a block.
 * Return: the block, as of lanefs_buf_new(), or an ERR_PTR, as of lanefs_alloc_blocks().
 */
struct lanefs_buf *lanefs_buf_alloc(struct lanefs_handle *h, struct lanefs_domain *domain,
				    u32 magic, u64 owner)
{
	struct lanefs_buf *used;
	u32 count;
	u64 block;
	int err;

	err = lanefs_alloc_blocks(h, domain, 0, 1, &block, &count);
	if (err)
		return ERR_PTR(err);
	used = lanefs_buf_cached(domain->d_journal, block);
	lanefs_buf_put(used);
	if (!used)
		return lanefs_buf_new(h, domain->d_journal, block, magic, owner);
	lanefs_error(domain->d_sbi, "domain %u: block %llu is in use, but free in the bitmap",
		     domain->d_id, block);
	return ERR_PTR(-EUCLEAN);
}

static int lanefs_clear_used(struct lanefs_handle *h, struct lanefs_domain *domain, u32 number,
			     u32 bit, u32 count)
{
	struct lanefs_group *group = &domain->d_groups[number];
	bool used;
	void *bits;
	int err;
	u32 i;

	err = lanefs_group_lock(domain, number);
	if (err)
		return err;
	group->g_differing += count;
	spin_unlock(&group->g_lock);
	lanefs_buf_join(h, group->g_buf);
	bits = lanefs_buf_bits(group->g_buf);
	spin_lock(&group->g_lock);
	used = find_next_zero_bit_le(bits, bit + count, bit) >= bit + count;
	for (i = 0; used && i < count; i++)
		__clear_bit_le(bit + i, bits);
	if (!used)
		group->g_differing -= count;
	spin_unlock(&group->g_lock);
	if (used)
		return 0;
	lanefs_error(domain->d_sbi, "domain %u: blocks are freed twice", domain->d_id);
	return -EUCLEAN;
}

/* Whether the journal needs one more block of revokes. */
static bool lanefs_note_freed(struct lanefs_txn *txn, u64 start, u64 count, bool metadata)
{
	struct lanefs_freed *freed = kmalloc(sizeof(*freed), GFP_NOFS | __GFP_NOFAIL);
	bool more;

	freed->start = start;
	freed->count = count;
	freed->metadata = metadata;
	spin_lock(&txn->t_lock);
	list_add_tail(&freed->node, &txn->t_freed);
	more = metadata && txn->t_revokes % LANEFS_JOURNAL_RECORDS == 0;
	WRITE_ONCE(txn->t_revokes, txn->t_revokes + metadata);
	spin_unlock(&txn->t_lock);
	return more;
}

/**
 * lanefs_free_blocks() - free consecutive data blocks, or one metadata block
 * @h: the handle
 * @domain: whose blocks
 * @start: the first one
 * @count: how many
 * @metadata: whether it is one of metadata
 *
 * They can be used again when the transaction is stable.
 *
 * Context: In a handle of the domain; takes g_lock and b_mutex.
 * Return: 0, -EUCLEAN: they are not in use or not data's, or the error of reading a bitmap.
 */
int lanefs_free_blocks(struct lanefs_handle *h, struct lanefs_domain *domain, u64 start, u64 count,
		       bool metadata)
{
	int joined = lanefs_handle_part(h, domain->d_journal);
	u32 bit, number, part;
	u64 at = start, left;
	int err;

	if (start < domain->d_layout.data || start >= domain->d_layout.end ||
	    count > domain->d_layout.end - start) {
		lanefs_error(domain->d_sbi, "domain %u: blocks %llu+%llu are outside the data area and cannot be freed",
			     domain->d_id, start, count);
		return -EUCLEAN;
	}
	for (left = count; left; left -= part, at += part) {
		number = div_u64_rem(at - domain->d_layout.base, LANEFS_BITMAP_BITS, &bit);
		part = min_t(u64, left, LANEFS_BITMAP_BITS - bit);
		err = lanefs_clear_used(h, domain, number, bit, part);
		if (err)
			return err;
	}
	if (metadata)
		lanefs_buf_unjoin(h, domain->d_journal, start);
	if (lanefs_note_freed(h->h_part[joined].txn, start, count, metadata))
		h->h_part[joined].used++;
	lanefs_add_pending(domain, count);
	return 0;
}

/**
 * lanefs_give_blocks() - make blocks free again that were taken in memory only
 * @domain: whose blocks
 * @start: the first one
 * @count: how many
 *
 * Context: Takes g_lock.
 */
void lanefs_give_blocks(struct lanefs_domain *domain, u64 start, u64 count)
{
	u32 bit, number, part;
	u64 at = start, left;

	for (left = count; left; left -= part, at += part) {
		number = div_u64_rem(at - domain->d_layout.base, LANEFS_BITMAP_BITS, &bit);
		part = min_t(u64, left, LANEFS_BITMAP_BITS - bit);
		lanefs_group_release(domain, number, bit, part);
		lanefs_give_free(domain, part);
	}
}

/* The transaction that freed the blocks is stable. */
void lanefs_release_freed(struct lanefs_domain *domain, u64 start, u64 count)
{
	lanefs_give_blocks(domain, start, count);
	lanefs_add_pending(domain, -(s64)count);
}
