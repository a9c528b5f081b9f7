// SPDX-License-Identifier: GPL-2.0-only
/* Stage 3: the bitmaps against what was found. */
#include <stdio.h>

#include "check.h"

static void count_differences(const u8 *disk, const u8 *right, u64 first, u64 bits, u64 *leaked,
			      u64 *unmarked, u64 *example)
{
	*leaked = *unmarked = 0;
	for (u64 n = first; n < first + bits; n++) {
		bool marked = get_bit(disk, n), used = get_bit(right, n);

		if (marked == used)
			continue;
		if (!*leaked && !*unmarked)
			*example = n;
		*leaked += marked;
		*unmarked += used;
	}
}

static void repair_part(struct check *c, u32 d, u32 magic, u64 number, const u8 *right)
{
	u8 block[LANEFS_BLOCK_SIZE];

	set_header(c, block, magic, number, d);
	memcpy(block + LANEFS_HEADER_SIZE, right, LANEFS_BODY_SIZE);
	write_block(c, number, block);
}

/* After other repairs a bitmap that differs is what they left to do, and no damage of its own. */
static bool shall_repair(struct check *c, u32 d, u64 group, u64 leaked, u64 unmarked, u64 example)
{
	if (c->repaired_before) {
		printf("domain %u: block bitmap of allocation group %llu updated after the repairs\n", d, group);
		return true;
	}
	return can_repair(&c->report, "domain %u: allocation group %llu marks %llu blocks that are"
			" free, and does not mark %llu in use (the first is %llu)", d, group,
			leaked, unmarked, c->domain[d].layout.base + example);
}

static void check_block_bitmap(struct check *c, u32 d)
{
	struct domain *domain = &c->domain[d];
	const struct lanefs_layout *layout = &domain->layout;
	u64 bits = layout->end - layout->base, all = layout->bbitmap_blocks * LANEFS_BITMAP_BITS;

	for (u64 n = 0; n < all; n++)
		if (n < layout->data - layout->base || n >= bits)
			set_bit(domain->used, n, true);
	for (u64 i = 0; i < layout->bbitmap_blocks; i++) {
		u64 leaked, unmarked, example = 0, first = i * LANEFS_BITMAP_BITS;
		const u8 *right = domain->used + i * LANEFS_BODY_SIZE;
		u8 block[LANEFS_BLOCK_SIZE];

		read_block(c, layout->bbitmap + i, block);
		if (!block_good(c, block, LANEFS_MAGIC_BBITMAP, layout->bbitmap + i, d)) {
			if (can_repair(&c->report, "domain %u: block %llu of the block bitmap is"
				     " damaged", d, i))
				repair_part(c, d, LANEFS_MAGIC_BBITMAP, layout->bbitmap + i, right);
			continue;
		}
		count_differences(domain->block_bits, domain->used, first, LANEFS_BITMAP_BITS,
				  &leaked, &unmarked, &example);
		if ((leaked || unmarked) && shall_repair(c, d, i, leaked, unmarked, example))
			repair_part(c, d, LANEFS_MAGIC_BBITMAP, layout->bbitmap + i, right);
	}
}

/* Bits of inodes themselves were compared in stage 2; here is what lies behind the last inode. */
static void check_inode_bitmap_end(struct check *c, u32 d)
{
	struct domain *domain = &c->domain[d];
	u64 all = domain->layout.ibitmap_blocks * LANEFS_BITMAP_BITS;
	u64 last = domain->layout.ibitmap_blocks - 1;
	bool inodes_wrong = false, orphans_wrong = false;

	for (u64 n = c->domain_inodes; n < all; n++) {
		inodes_wrong |= !get_bit(domain->inode_bits, n);
		orphans_wrong |= get_bit(domain->orphan_bits, n);
		set_bit(domain->inode_bits, n, true);
		set_bit(domain->orphan_bits, n, false);
	}
	if (inodes_wrong && can_repair(&c->report, "domain %u: the inode bitmap marks inodes"
				     " behind the last one as free", d))
		repair_part(c, d, LANEFS_MAGIC_IBITMAP, domain->layout.ibitmap + last,
			  domain->inode_bits + last * LANEFS_BODY_SIZE);
	if (orphans_wrong && can_repair(&c->report, "domain %u: the orphan bitmap has orphans behind"
				      " the last inode", d))
		repair_part(c, d, LANEFS_MAGIC_OBITMAP, domain->layout.obitmap + last,
			  domain->orphan_bits + last * LANEFS_BODY_SIZE);
}

void check_bitmaps(struct check *c)
{
	for (u32 d = 0; d < c->domains; d++) {
		check_block_bitmap(c, d);
		check_inode_bitmap_end(c, d);
	}
}
