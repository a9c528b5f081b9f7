// SPDX-License-Identifier: GPL-2.0-only
/* Stage 1 of regular files, and who has which block. */
#include <stdlib.h>

#include "inodes.h"
#include "tools/common/die.h"

bool claim(struct check *c, u64 block)
{
	struct domain *domain = domain_of_block(c, block);

	if (!domain || get_bit(domain->used, block - domain->layout.base))
		return false;
	set_bit(domain->used, block - domain->layout.base, true);
	return true;
}

void unclaim(struct check *c, u64 block)
{
	struct domain *domain = domain_of_block(c, block);

	set_bit(domain->used, block - domain->layout.base, false);
}

void check_size(struct check *c, u64 ino, struct lanefs_dinode *inode, u64 right, bool *write)
{
	FIELD(cpu_to_le64(right), inode->di_size, "the size");
}

void check_blocks(struct check *c, u64 ino, struct lanefs_dinode *inode, u64 right, bool *write)
{
	FIELD(cpu_to_le64(right + !!inode->di_xattr), inode->di_blocks, "the number of blocks");
}

bool claim_block(struct walk *walk, u64 block)
{
	if (claim(walk->check, block))
		return true;
	damaged(walk, "block %llu of its tree is in use twice", block);
	return false;
}

struct mapping {
	struct lanefs_extent *extents;
	size_t count, room;
	u64 data_blocks;
	u64 last_end;
	u64 size_blocks;
	bool orphan;
};

static bool claim_extent(struct check *c, u64 block, u64 length)
{
	for (u64 i = 0; i < length; i++) {
		if (claim(c, block + i))
			continue;
		while (i--)
			unclaim(c, block + i);
		return false;
	}
	return true;
}

static void keep(struct mapping *mapping, const struct lanefs_extent *extent)
{
	if (mapping->count == mapping->room) {
		mapping->room = mapping->room ? 2 * mapping->room : 64;
		mapping->extents = reallocate(mapping->extents, mapping->room,
					      sizeof(*mapping->extents));
	}
	mapping->extents[mapping->count++] = *extent;
	mapping->data_blocks += le32_to_cpu(extent->ex_length) & ~LANEFS_EXTENT_UNWRITTEN;
}

static void check_extent(struct walk *walk, struct lanefs_extent extent, u64 low, u64 high)
{
	struct mapping *mapping = walk->context;
	u32 raw = le32_to_cpu(extent.ex_length);
	u64 first = le32_to_cpu(extent.ex_logical), length = raw & ~LANEFS_EXTENT_UNWRITTEN;
	u64 block = le64_to_cpu(extent.ex_block), end = first + length;
	struct domain *domain = domain_of_block(walk->check, block);

	if (!length || end > LANEFS_MAX_FILE_BLOCKS) {
		damaged(walk, "the extent at %llu has %llu blocks", first, length);
		return;
	}
	if (!domain || length > domain->layout.end - block) {
		damaged(walk, "the extent at %llu is at blocks %llu+%llu, which are not for data", first, block, length);
		return;
	}
	if (first < mapping->last_end) {
		damaged(walk, "the extent at %llu overlaps one before it", first);
		return;
	}
	if (first < low || end > high)
		damaged(walk, "the extent at %llu is in the wrong leaf", first);
	if (!(raw & LANEFS_EXTENT_UNWRITTEN) && end > mapping->size_blocks && !mapping->orphan) {
		damaged(walk, "the extent at %llu goes beyond the end of the file", first);
		if (first >= mapping->size_blocks)
			return;
		length = mapping->size_blocks - first;
		extent.ex_length = cpu_to_le32((u32)length);
	}
	if (!claim_extent(walk->check, block, length)) {
		damaged(walk, "the extent at %llu has blocks that are in use twice", first);
		return;
	}
	mapping->last_end = end;
	keep(mapping, &extent);
}

static void check_extents(struct walk *walk, const void *records, unsigned int count, u64 low,
			  u64 high)
{
	for (unsigned int i = 0; i < count; i++) {
		struct lanefs_extent extent;

		memcpy(&extent, (const u8 *)records + i * sizeof(extent), sizeof(extent));
		check_extent(walk, extent, low, high);
	}
}

/* The second pass: damage of the tree was reported in the first. */
void check_file_data(struct check *c, u64 ino, struct lanefs_dinode *inode, bool *write)
{
	const struct record *record = find_record(c, ino);
	struct mapping mapping = {
		.size_blocks = lanefs_blocks_for(le64_to_cpu(inode->di_size),
						 (u64)LANEFS_BLOCK_SIZE),
		.orphan = record->orphan,
	};
	struct walk walk = {
		.check = c, .ino = ino, .inode = inode, .quiet = record->bad_tree,
		.context = &mapping, .on_leaf = check_extents,
	};

	walk_tree(&walk);
	if (walk.damaged) {
		edit_map(c, ino, mapping.extents, mapping.count);
		return;
	}
	/* Those of a shift that is under way may be behind. */
	if (!inode->di_shift_by)
		check_owners(c, ino, mapping.extents, mapping.count);
	free(mapping.extents);
	check_blocks(c, ino, inode, walk.blocks + mapping.data_blocks, write);
}

void check_file_tree(struct check *c, u64 ino, struct lanefs_dinode *inode, bool *write)
{
	struct walk walk = { .check = c, .ino = ino, .inode = inode, .on_block = claim_block };

	if (le64_to_cpu(inode->di_size) > LANEFS_MAX_FILE_BLOCKS * LANEFS_BLOCK_SIZE)
		check_size(c, ino, inode, LANEFS_MAX_FILE_BLOCKS * LANEFS_BLOCK_SIZE, write);
	walk_tree(&walk);
	find_record(c, ino)->bad_tree = walk.damaged;
}
