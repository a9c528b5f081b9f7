// SPDX-License-Identifier: GPL-2.0-only
/* Inodes: where a new one is placed, how it is taken and freed, orphans. */
#include <linux/mm.h>
#include <linux/slab.h>

#include "inode/inode.h"

/* Whether an inode is free. */
static bool lanefs_has_inodes(struct lanefs_domain *domain)
{
	s64 seen = lanefs_count_seen(domain);

	do {
		if (percpu_counter_compare(&domain->d_inodes_free, 0) > 0)
			return true;
	} while (lanefs_count_more(domain, &seen));
	return false;
}

/**
 * lanefs_choose_domain() - choose the domain of a new object
 * @dir: its directory
 *
 * By the mount option, or the next one with room. Round robin begins behind the directory's own
 * domain: else the first files of all directories would share one.
 *
 * Context: Outside of handles.
 * Return: the number of the domain.
 */
u32 lanefs_choose_domain(struct inode *dir)
{
	struct lanefs_sb *sbi = LANEFS_SB(dir->i_sb);
	unsigned int placement = READ_ONCE(sbi->s_options.placement);
	struct lanefs_domain *domain;
	u32 first = 0, i;

	if (placement == LANEFS_PLACE_LANE)
		first = raw_smp_processor_id() % sbi->s_domains;
	else if (placement == LANEFS_PLACE_ROUNDROBIN)
		first = (LANEFS_I(dir)->li_domain +
			 (u32)atomic_inc_return(&LANEFS_I(dir)->li_next_domain)) % sbi->s_domains;
	for (i = 0; i < sbi->s_domains; i++) {
		domain = sbi->s_domain[(first + i) % sbi->s_domains];
		if (lanefs_has_inodes(domain) &&
		    lanefs_has_room(domain, 4 * (LANEFS_MAX_LEVEL + 2), LANEFS_FOR_METADATA))
			return domain->d_id;
	}
	return first;
}

static u64 lanefs_itable_block(const struct lanefs_domain *domain, u64 index)
{
	return domain->d_layout.itable + div_u64(index, LANEFS_INODES_PER_BLOCK);
}

/* Whether an inode of the table block of `index` is in use: 1 or 0, or an error. */
static int lanefs_itable_used(struct lanefs_domain *domain, u64 index)
{
	u64 first = div_u64(index, LANEFS_INODES_PER_BLOCK) * LANEFS_INODES_PER_BLOCK;
	u64 end = min_t(u64, first + LANEFS_INODES_PER_BLOCK, domain->d_sbi->s_domain_inodes);

	return lanefs_inodes_used(domain, first, end);
}

/* Takes this inode, which is free, and whose bit in `map` is in memory; under its shard's lock. */
static int lanefs_inode_take(struct lanefs_handle *h, struct lanefs_domain *domain, u64 index,
			     struct lanefs_ibitmap *map, u32 bit, struct lanefs_buf **buf)
{
	u64 block = lanefs_itable_block(domain, index);
	int used = lanefs_itable_used(domain, index);

	lockdep_assert_held(&lanefs_shard_of(domain, index)->sh_mutex);
	if (used < 0)
		return used;
	if (used)
		*buf = lanefs_buf_read(domain->d_journal, block, LANEFS_MAGIC_ITABLE, domain->d_id);
	else
		*buf = lanefs_buf_new(h, domain->d_journal, block, LANEFS_MAGIC_ITABLE, domain->d_id);
	if (IS_ERR(*buf))
		return PTR_ERR(*buf);
	lanefs_buf_join(h, *buf);
	lanefs_buf_join(h, map->im_used);
	__set_bit_le(bit, lanefs_buf_bits(map->im_used));
	__set_bit_le(bit, map->im_bits);
	percpu_counter_dec(&domain->d_inodes_free);
	return 0;
}

/*
 * Takes the first free inode from *index on, whose bits are in memory, in the same run and the same
 * block of the bitmap; -ENOSPC: *index is the first behind them.
 */
static int lanefs_inode_take_near(struct lanefs_handle *h, struct lanefs_domain *domain, u64 *index,
				  struct lanefs_buf **buf)
{
	struct lanefs_shard *shard = lanefs_shard_of(domain, *index);
	u64 end = (div_u64(*index, LANEFS_SHARD_RUN) + 1) * LANEFS_SHARD_RUN, first;
	struct lanefs_ibitmap *map;
	int err = -ENOSPC;
	u32 bit;

	map = lanefs_ibitmap_of(domain, *index, &bit);
	first = *index - bit;
	end = min3(end, first + LANEFS_BITMAP_BITS, domain->d_sbi->s_domain_inodes);
	mutex_lock(&shard->sh_mutex);
	bit = find_next_zero_bit_le(map->im_bits, end - first, bit);
	*index = first + bit;
	if (*index < end)
		err = lanefs_inode_take(h, domain, *index, map, bit, buf);
	mutex_unlock(&shard->sh_mutex);
	return err;
}

/*
 * Takes a free inode, of this CPU's region if there is one. *buf is its block of the inode table,
 * joined to the handle. -ENOSPC: the domain has none left.
 */
int lanefs_inode_alloc(struct lanefs_handle *h, struct lanefs_domain *domain, u64 *ino,
		       struct lanefs_buf **buf)
{
	struct lanefs_slot *slot = raw_cpu_ptr(domain->d_slots);
	u64 index = READ_ONCE(slot->s_inode_hint);
	bool again = false;
	int err;

	for (;;) {
		err = lanefs_inodes_find(domain, &index);
		if (err == -ENOSPC && !again) {
			again = true;
			index = LANEFS_FIRST_INDEX;
			continue;
		}
		if (err)
			return err;
		err = lanefs_inode_take_near(h, domain, &index, buf);
		if (err != -ENOSPC)
			break;
	}
	if (err)
		return err;
	WRITE_ONCE(slot->s_inode_hint, index + 1);
	*ino = lanefs_ino(domain->d_id, index);
	return 0;
}

/**
 * lanefs_inode_free() - free an inode that holds no blocks any more
 * @h: the handle
 * @inode: the inode
 *
 * Where its bitmap cannot be read the file system is aborted, and the transaction does not
 * commit.
 *
 * Context: In a handle of the inode's domain; takes sh_mutex.
 */
void lanefs_inode_free(struct lanefs_handle *h, struct inode *inode)
{
	struct lanefs_domain *domain = lanefs_domain_of(inode);
	u64 index = lanefs_ino_index(inode->i_ino);
	struct lanefs_slot *slot = raw_cpu_ptr(domain->d_slots);
	struct lanefs_shard *shard = lanefs_shard_of(domain, index);
	struct lanefs_buf *table = LANEFS_I(inode)->li_buf;
	struct lanefs_ibitmap *map;
	u32 bit;

	map = lanefs_ibitmap_of(domain, index, &bit);
	if (lanefs_ibitmap_load(domain, map))
		return;
	mutex_lock(&shard->sh_mutex);
	lanefs_buf_join(h, table);
	memset(table->b_data + LANEFS_INODE_SIZE * (1 + index % LANEFS_INODES_PER_BLOCK), 0,
	       LANEFS_INODE_SIZE);
	lanefs_buf_join(h, map->im_used);
	__clear_bit_le(bit, lanefs_buf_bits(map->im_used));
	__clear_bit_le(bit, map->im_bits);
	percpu_counter_inc(&domain->d_inodes_free);
	mutex_unlock(&shard->sh_mutex);
	if (index >= slot->s_inode_first && index < READ_ONCE(slot->s_inode_hint))
		WRITE_ONCE(slot->s_inode_hint, index);
}

/**
 * lanefs_orphan() - mark an inode for recovery, or take the mark off
 * @h: the handle
 * @inode: one to be deleted or cut, or whose shift is to be ended
 * @set: whether to mark it
 *
 * Where the bitmap cannot be read the file system is aborted.
 *
 * Context: In a handle of the inode's domain; takes sh_mutex.
 */
void lanefs_orphan(struct lanefs_handle *h, struct inode *inode, bool set)
{
	struct lanefs_domain *domain = lanefs_domain_of(inode);
	struct lanefs_ibitmap *map;
	struct lanefs_shard *shard;
	struct lanefs_buf *bitmap;
	u32 bit;

	if (LANEFS_I(inode)->li_orphan == set)
		return;
	map = lanefs_ibitmap_of(domain, lanefs_ino_index(inode->i_ino), &bit);
	bitmap = lanefs_ibitmap_orphans(domain, map);
	if (IS_ERR(bitmap))
		return;
	shard = lanefs_shard_of(domain, lanefs_ino_index(inode->i_ino));
	mutex_lock(&shard->sh_mutex);
	lanefs_buf_join(h, bitmap);
	if (set)
		__set_bit_le(bit, lanefs_buf_bits(bitmap));
	else
		__clear_bit_le(bit, lanefs_buf_bits(bitmap));
	mutex_unlock(&shard->sh_mutex);
	LANEFS_I(inode)->li_orphan = set;
}
