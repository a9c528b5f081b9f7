// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bitmaps of a domain's inodes: which are in use, and which are orphans. The blocks come into
 * memory when they are first used, and stay there; the free ones are counted then, if they were not
 * in the background (count.c).
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "inode/inode.h"

/* The bits of a block that stand for inodes. */
static u32 lanefs_ibitmap_bits(const struct lanefs_domain *domain, u32 number)
{
	return min_t(u64, domain->d_sbi->s_domain_inodes - (u64)number * LANEFS_BITMAP_BITS,
		     LANEFS_BITMAP_BITS);
}

/* With d_bitmaps_mutex: how many of the block's inodes are free, if that was not known. */
static int lanefs_ibitmap_count(struct lanefs_domain *domain, u32 number, const void *bits)
{
	struct lanefs_ibitmap *map = &domain->d_ibitmaps[number];

	lockdep_assert_held(&domain->d_bitmaps_mutex);
	if (map->im_counted)
		return 0;
	if (!number && find_next_zero_bit_le(bits, LANEFS_FIRST_INDEX, 0) < LANEFS_FIRST_INDEX) {
		lanefs_error(domain->d_sbi, "domain %u: the inode bitmap marks reserved inodes as free",
			     domain->d_id);
		return -EUCLEAN;
	}
	map->im_free = lanefs_zero_bits(bits, lanefs_ibitmap_bits(domain, number));
	percpu_counter_add(&domain->d_inodes_free, map->im_free);
	smp_store_release(&map->im_counted, true);
	lanefs_count_progress(domain);
	return 0;
}

static bool lanefs_ibitmap_known(struct lanefs_domain *domain, u32 number)
{
	return smp_load_acquire(&domain->d_ibitmaps[number].im_counted);
}

static int lanefs_ibitmap_see(struct lanefs_domain *domain, u32 number, const void *bits)
{
	int err;

	mutex_lock(&domain->d_bitmaps_mutex);
	err = lanefs_ibitmap_count(domain, number, bits);
	mutex_unlock(&domain->d_bitmaps_mutex);
	return err;
}

/**
 * lanefs_ibitmaps_count() - count some of a domain's free inodes
 * @domain: the domain
 *
 * Context: In the background count (count.c) alone; takes d_bitmaps_mutex, and no handle.
 * Return: 1: there are more; 0: those were all; or the error of lanefs_count_next().
 */
int lanefs_ibitmaps_count(struct lanefs_domain *domain)
{
	const struct lanefs_bitmap bitmap = {
		.first = domain->d_layout.ibitmap,
		.blocks = domain->d_layout.ibitmap_blocks,
		.magic = LANEFS_MAGIC_IBITMAP,
		.known = lanefs_ibitmap_known,
		.see = lanefs_ibitmap_see,
	};

	return lanefs_count_next(domain, &bitmap, &domain->d_count_inodes);
}

/**
 * lanefs_ibitmaps_start() - allocate what is known of a domain's inode bitmaps: nothing yet
 * @domain: the domain
 *
 * Context: At the mount.
 * Return: 0 or -ENOMEM.
 */
int lanefs_ibitmaps_start(struct lanefs_domain *domain)
{
	domain->d_ibitmaps = kvcalloc(domain->d_layout.ibitmap_blocks,
				      sizeof(*domain->d_ibitmaps), GFP_KERNEL);
	return domain->d_ibitmaps ? 0 : -ENOMEM;
}

/**
 * lanefs_ibitmaps_stop() - free a domain's inode bitmaps in memory, if there are any
 * @domain: the domain
 *
 * Context: At the end of the mount, before lanefs_journal_free(): it puts blocks.
 */
void lanefs_ibitmaps_stop(struct lanefs_domain *domain)
{
	struct lanefs_ibitmap *map;
	u64 i;

	for (i = 0; domain->d_ibitmaps && i < domain->d_layout.ibitmap_blocks; i++) {
		map = &domain->d_ibitmaps[i];
		kfree(map->im_bits);
		lanefs_buf_put(map->im_used);
		lanefs_buf_put(map->im_orphans);
	}
	kvfree(domain->d_ibitmaps);
	domain->d_ibitmaps = NULL;
}

static int lanefs_orphans_see(struct lanefs_domain *domain, u32 number, const void *bits)
{
	u32 count = lanefs_ibitmap_bits(domain, number);

	domain->d_ibitmaps[number].im_orphaned = find_next_bit_le(bits, count, 0) < count;
	return 0;
}

/**
 * lanefs_orphans_scan() - note which blocks of a domain's orphan bitmap have any
 * @domain: the domain
 *
 * Context: Before the domain's journal runs, for many domains at once; sleeps for reads.
 * Return: 0 or the error of lanefs_bitmap_scan().
 */
int lanefs_orphans_scan(struct lanefs_domain *domain)
{
	const struct lanefs_bitmap bitmap = {
		.first = domain->d_layout.obitmap,
		.blocks = domain->d_layout.ibitmap_blocks,
		.magic = LANEFS_MAGIC_OBITMAP,
		.see = lanefs_orphans_see,
	};

	return lanefs_bitmap_scan(domain, &bitmap, 0, bitmap.blocks);
}

/* Has the bits in memory, which were not, and their block. */
int lanefs_ibitmap_read(struct lanefs_domain *domain, struct lanefs_ibitmap *map)
{
	u32 number = map - domain->d_ibitmaps;
	struct lanefs_buf *buf;
	unsigned long *bits;
	int err = 0;

	buf = lanefs_buf_read(domain->d_journal, domain->d_layout.ibitmap + number,
			      LANEFS_MAGIC_IBITMAP, domain->d_id);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	mutex_lock(&domain->d_bitmaps_mutex);
	if (!map->im_bits)
		err = lanefs_ibitmap_count(domain, number, lanefs_buf_bits(buf));
	if (err || map->im_bits) {
		lanefs_buf_put(buf);
		goto unlock;
	}
	/* Nobody has changed it yet. */
	map->im_used = buf;
	bits = kmemdup(lanefs_buf_bits(buf), LANEFS_BODY_SIZE, GFP_NOFS | __GFP_NOFAIL);
	smp_store_release(&map->im_bits, bits);
unlock:
	mutex_unlock(&domain->d_bitmaps_mutex);
	return err;
}

/**
 * lanefs_ibitmap_orphans() - get a block of a domain's orphan bitmap
 * @domain: the domain
 * @map: of the same inodes
 *
 * Context: May sleep for a read; takes d_bitmaps_mutex; within or outside of handles.
 * Return: the block, which stays in memory to the end of the mount, with no reference for the
 * caller; or an ERR_PTR of lanefs_buf_read().
 */
struct lanefs_buf *lanefs_ibitmap_orphans(struct lanefs_domain *domain, struct lanefs_ibitmap *map)
{
	u64 block = domain->d_layout.obitmap + (map - domain->d_ibitmaps);
	struct lanefs_buf *buf = smp_load_acquire(&map->im_orphans);

	if (buf)
		return buf;
	buf = lanefs_buf_read(domain->d_journal, block, LANEFS_MAGIC_OBITMAP, domain->d_id);
	if (IS_ERR(buf))
		return buf;
	mutex_lock(&domain->d_bitmaps_mutex);
	if (map->im_orphans)
		lanefs_buf_put(buf);
	else
		smp_store_release(&map->im_orphans, buf);
	mutex_unlock(&domain->d_bitmaps_mutex);
	return map->im_orphans;
}

/* Whether any inode from `first` to before `end` is in use: 1 or 0, or an error. */
int lanefs_inodes_used(struct lanefs_domain *domain, u64 first, u64 end)
{
	struct lanefs_ibitmap *map;
	u32 bit, count;
	int err;

	for (; first < end; first += count) {
		map = lanefs_ibitmap_of(domain, first, &bit);
		count = min_t(u64, end - first, LANEFS_BITMAP_BITS - bit);
		err = lanefs_ibitmap_load(domain, map);
		if (err)
			return err;
		if (find_next_bit_le(map->im_bits, bit + count, bit) < bit + count)
			return 1;
	}
	return 0;
}

/*
 * The first free inode from *index on, without locks: others may take it, or free one before it,
 * meanwhile. -ENOSPC: there is none, or another error.
 */
int lanefs_inodes_find(struct lanefs_domain *domain, u64 *index)
{
	u64 inodes = domain->d_sbi->s_domain_inodes, at, next;
	struct lanefs_ibitmap *map;
	u32 bit, end;
	int err;

	for (at = *index; at < inodes; at = next) {
		map = lanefs_ibitmap_of(domain, at, &bit);
		end = lanefs_ibitmap_bits(domain, map - domain->d_ibitmaps);
		next = at - bit + LANEFS_BITMAP_BITS;
		/* Who frees one has the bits in memory. */
		if (!smp_load_acquire(&map->im_bits) &&
		    lanefs_ibitmap_known(domain, map - domain->d_ibitmaps) && !map->im_free)
			continue;
		err = lanefs_ibitmap_load(domain, map);
		if (err)
			return err;
		*index = at - bit + data_race(find_next_zero_bit_le(map->im_bits, end, bit));
		if (*index < at - bit + end)
			return 0;
	}
	return -ENOSPC;
}
