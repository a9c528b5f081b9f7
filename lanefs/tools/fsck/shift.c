// SPDX-License-Identifier: GPL-2.0-only
/* The end of a shift that a crash has interrupted (format.h): a collapse is ended, an insertion undone. */
#include "inodes.h"
#include "names.h"
#include "tools/common/die.h"

struct shift {
	struct lanefs_extent *extents;
	size_t count;
	u64 at, by;	/* the hole */
};

/* Adds the part of an extent from @first to before @end, moved down by @by. */
static void add_part(struct shift *shift, const struct lanefs_extent *whole, u64 first, u64 end, u64 by)
{
	u64 skip = first - le32_to_cpu(whole->ex_logical);

	if (first >= end)
		return;
	shift->extents[shift->count++] = (struct lanefs_extent){
		.ex_logical = cpu_to_le32((u32)(first - by)),
		.ex_length = cpu_to_le32((u32)(end - first) | (le32_to_cpu(whole->ex_length) &
							      LANEFS_EXTENT_UNWRITTEN)),
		.ex_block = cpu_to_le64(le64_to_cpu(whole->ex_block) + skip),
	};
}

static void shift_extents(struct walk *walk, const void *records, unsigned int count, u64 low, u64 high)
{
	struct shift *shift = walk->context;
	const struct lanefs_extent *extents = records;

	(void)low;
	(void)high;
	shift->extents = reallocate(shift->extents, shift->count + 2 * count, sizeof(*shift->extents));
	for (unsigned int i = 0; i < count; i++) {
		u64 first = le32_to_cpu(extents[i].ex_logical), behind = shift->at + shift->by;
		u64 end = first + (le32_to_cpu(extents[i].ex_length) & ~LANEFS_EXTENT_UNWRITTEN);

		add_part(shift, &extents[i], first, end < shift->at ? end : shift->at, 0);
		add_part(shift, &extents[i], first > behind ? first : behind, end, shift->by);
	}
}

bool end_shift(struct check *c, u64 ino)
{
	struct lanefs_dinode inode;
	struct walk walk = { .check = c, .ino = ino, .inode = &inode, .quiet = true,
			     .on_leaf = shift_extents };
	struct shift shift = { 0 };

	if (!read_inode(c, ino, &inode) || !inode.di_shift_by)
		return false;
	walk.context = &shift;
	shift.at = le32_to_cpu(inode.di_shift_at);
	shift.by = le32_to_cpu(inode.di_shift_by);
	walk_tree(&walk);
	renew_owners(c, ino, shift.extents, shift.count);
	inode.di_size = cpu_to_le64(le64_to_cpu(inode.di_size) - shift.by * LANEFS_BLOCK_SIZE);
	inode.di_shift_at = 0;
	inode.di_shift_by = 0;
	write_inode(c, ino, &inode);
	edit_map(c, ino, shift.extents, shift.count);
	set_orphan_bit(c, ino, false);
	return true;
}
