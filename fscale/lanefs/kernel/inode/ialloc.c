// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inodes: where a new one is placed, the inode bitmap and table of a domain, orphans.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "inode/inode.h"

/* The bit of an inode in a bitmap, and the block that has it. */
static struct lanefs_buf *lanefs_inode_bit(struct lanefs_buf **bitmap, u64 index, u32 *bit)
{
	return bitmap[div_u64_rem(index, LANEFS_BITMAP_BITS, bit)];
}

static void lanefs_bitmap_drop(struct lanefs_domain *domain, struct lanefs_buf ***bitmap)
{
	u64 i;

	for (i = 0; *bitmap && i < domain->d_layout.ibitmap_blocks; i++)
		lanefs_buf_put((*bitmap)[i]);
	kvfree(*bitmap);
	*bitmap = NULL;
}

/* Reads a bitmap of inodes from block `first` on, and keeps its blocks in *bitmap. */
static int lanefs_bitmap_load(struct lanefs_domain *domain, u64 first, u32 magic,
			      struct lanefs_buf ***bitmap)
{
	u64 blocks = domain->d_layout.ibitmap_blocks, i;
	struct lanefs_buf *buf;

	*bitmap = kvcalloc(blocks, sizeof(**bitmap), GFP_KERNEL);
	if (!*bitmap)
		return -ENOMEM;
	for (i = 0; i < blocks; i++) {
		buf = lanefs_buf_read(domain, first + i, magic, domain->d_id);
		if (IS_ERR(buf)) {
			lanefs_bitmap_drop(domain, bitmap);
			return PTR_ERR(buf);
		}
		(*bitmap)[i] = buf;
	}
	return 0;
}

int lanefs_inodes_start(struct lanefs_domain *domain)
{
	u64 i, inodes = domain->d_sbi->s_domain_inodes, at, used = 0;
	int err;

	domain->d_inode_map = kvzalloc(domain->d_layout.ibitmap_blocks * LANEFS_BODY_SIZE,
				       GFP_KERNEL | __GFP_NOWARN);
	if (!domain->d_inode_map)
		return -ENOMEM;
	err = lanefs_bitmap_load(domain, domain->d_layout.ibitmap, LANEFS_MAGIC_IBITMAP,
				 &domain->d_inode_bits);
	if (err)
		return err;
	for (i = 0; i < domain->d_layout.ibitmap_blocks; i++)
		memcpy((u8 *)domain->d_inode_map + i * LANEFS_BODY_SIZE,
		       lanefs_buf_bits(domain->d_inode_bits[i]), LANEFS_BODY_SIZE);
	if (find_next_zero_bit_le(domain->d_inode_map, LANEFS_FIRST_INDEX, 0) <
	    LANEFS_FIRST_INDEX) {
		lanefs_error(domain->d_sbi, "domain %u: the inode bitmap marks reserved inodes as free", domain->d_id);
		return -EUCLEAN;
	}
	for (at = find_next_bit_le(domain->d_inode_map, inodes, 0); at < inodes;
	     at = find_next_bit_le(domain->d_inode_map, inodes, at + 1))
		used++;
	percpu_counter_set(&domain->d_inodes_free, inodes - used);
	return 0;
}

void lanefs_inodes_stop(struct lanefs_domain *domain)
{
	kvfree(domain->d_inode_map);
	domain->d_inode_map = NULL;
	lanefs_bitmap_drop(domain, &domain->d_inode_bits);
	lanefs_bitmap_drop(domain, &domain->d_orphan_bits);
}

/* Chooses the domain of a new object in `dir`: by the mount option, or the next one with room. */
u32 lanefs_choose_domain(struct inode *dir)
{
	struct lanefs_sb *sbi = LANEFS_SB(dir->i_sb);
	struct lanefs_domain *domain;
	u32 first = 0, i;

	if (sbi->s_options.placement == LANEFS_PLACE_LANE)
		first = raw_smp_processor_id() % sbi->s_domains;
	else if (sbi->s_options.placement == LANEFS_PLACE_ROUNDROBIN)
		first = (u32)atomic_inc_return(&LANEFS_I(dir)->li_next_domain) % sbi->s_domains;
	for (i = 0; i < sbi->s_domains; i++) {
		domain = sbi->s_domain[(first + i) % sbi->s_domains];
		if (percpu_counter_compare(&domain->d_inodes_free, 0) > 0 &&
		    lanefs_has_room(domain, 4 * (LANEFS_MAX_LEVEL + 2), LANEFS_FOR_METADATA))
			return domain->d_id;
	}
	return first;
}

static u64 lanefs_itable_block(const struct lanefs_domain *domain, u64 index)
{
	return domain->d_layout.itable + div_u64(index, LANEFS_INODES_PER_BLOCK);
}

/* Whether no inode of the table block of `index` is in use. */
static bool lanefs_itable_unused(const struct lanefs_domain *domain, u64 index)
{
	u64 first = div_u64(index, LANEFS_INODES_PER_BLOCK) * LANEFS_INODES_PER_BLOCK;
	u64 end = min_t(u64, first + LANEFS_INODES_PER_BLOCK, domain->d_sbi->s_domain_inodes);

	return find_next_bit_le(domain->d_inode_map, end, first) >= end;
}

/* Takes this inode, which is free; under its shard's lock. */
static int lanefs_inode_take(struct lanefs_handle *h, struct lanefs_domain *domain, u64 index,
			     struct lanefs_buf **buf)
{
	u64 block = lanefs_itable_block(domain, index);
	struct lanefs_buf *bitmap;
	u32 bit;

	if (lanefs_itable_unused(domain, index))
		*buf = lanefs_buf_new(h, domain, block, LANEFS_MAGIC_ITABLE, domain->d_id);
	else
		*buf = lanefs_buf_read(domain, block, LANEFS_MAGIC_ITABLE, domain->d_id);
	if (IS_ERR(*buf))
		return PTR_ERR(*buf);
	lanefs_buf_join(h, *buf);
	bitmap = lanefs_inode_bit(domain->d_inode_bits, index, &bit);
	lanefs_buf_join(h, bitmap);
	__set_bit_le(bit, lanefs_buf_bits(bitmap));
	__set_bit_le(index, domain->d_inode_map);
	percpu_counter_dec(&domain->d_inodes_free);
	return 0;
}

/* Takes the first free inode from *index on, in the same run; -ENOSPC: *index is the next run's. */
static int lanefs_inode_take_near(struct lanefs_handle *h, struct lanefs_domain *domain, u64 *index,
				  struct lanefs_buf **buf)
{
	struct lanefs_shard *shard = lanefs_shard_of(domain, *index);
	u64 end = (div_u64(*index, LANEFS_SHARD_RUN) + 1) * LANEFS_SHARD_RUN;
	int err = -ENOSPC;

	end = min(end, domain->d_sbi->s_domain_inodes);
	mutex_lock(&shard->sh_mutex);
	*index = find_next_zero_bit_le(domain->d_inode_map, end, *index);
	if (*index < end)
		err = lanefs_inode_take(h, domain, *index, buf);
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
	u64 inodes = domain->d_sbi->s_domain_inodes, index = READ_ONCE(slot->s_inode_hint);
	bool again = false;
	int err;

	for (;;) {
		/* Others may take it, or free one before it, meanwhile. */
		index = data_race(find_next_zero_bit_le(domain->d_inode_map, inodes, index));
		if (index >= inodes) {
			if (again)
				return -ENOSPC;
			again = true;
			index = LANEFS_FIRST_INDEX;
			continue;
		}
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

/* Frees the inode, which holds no blocks any more. */
void lanefs_inode_free(struct lanefs_handle *h, struct inode *inode)
{
	struct lanefs_domain *domain = lanefs_domain_of(inode);
	u64 index = lanefs_ino_index(inode->i_ino);
	struct lanefs_slot *slot = raw_cpu_ptr(domain->d_slots);
	struct lanefs_shard *shard = lanefs_shard_of(domain, index);
	struct lanefs_buf *table = LANEFS_I(inode)->li_buf, *bitmap;
	u32 bit;

	mutex_lock(&shard->sh_mutex);
	bitmap = lanefs_inode_bit(domain->d_inode_bits, index, &bit);
	lanefs_buf_join(h, table);
	memset(table->b_data + LANEFS_INODE_SIZE * (1 + index % LANEFS_INODES_PER_BLOCK), 0,
	       LANEFS_INODE_SIZE);
	lanefs_buf_join(h, bitmap);
	__clear_bit_le(bit, lanefs_buf_bits(bitmap));
	__clear_bit_le(index, domain->d_inode_map);
	percpu_counter_inc(&domain->d_inodes_free);
	mutex_unlock(&shard->sh_mutex);
	if (index >= slot->s_inode_first && index < READ_ONCE(slot->s_inode_hint))
		WRITE_ONCE(slot->s_inode_hint, index);
}

/* Marks the inode as one that recovery has to delete or to cut, or takes the mark off. */
void lanefs_orphan(struct lanefs_handle *h, struct inode *inode, bool set)
{
	struct lanefs_domain *domain = lanefs_domain_of(inode);
	struct lanefs_shard *shard;
	struct lanefs_buf *bitmap;
	u32 bit;

	if (LANEFS_I(inode)->li_orphan == set)
		return;
	bitmap = lanefs_inode_bit(domain->d_orphan_bits, lanefs_ino_index(inode->i_ino), &bit);
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

/* Before the domain's journal runs. */
int lanefs_orphans_load(struct lanefs_domain *domain)
{
	if (domain->d_orphan_bits)
		return 0;
	return lanefs_bitmap_load(domain, domain->d_layout.obitmap, LANEFS_MAGIC_OBITMAP,
				  &domain->d_orphan_bits);
}
