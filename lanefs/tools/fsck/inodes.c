// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stage 1: each inode by itself. First all inodes and their trees, then the data of files, so
 * that of a block that is wanted by both the tree keeps it.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "core/flags.h"
#include "core/symlink.h"
#include "inodes.h"

#define SECOND 1000000000u

void remove_inode(struct check *c, u64 ino)
{
	const struct lanefs_dinode nothing = { 0 };

	write_inode(c, ino, &nothing);
	set_inode_bit(c, ino, false);
	if (get_bit(c->domain[lanefs_ino_domain(ino)].orphan_bits, lanefs_ino_index(ino)))
		set_orphan_bit(c, ino, false);
}

/* The content of a reserved inode that holds nothing. */
static void reset_reserved(struct check *c, u64 ino)
{
	struct lanefs_dinode inode = { 0 };

	if (ino == LANEFS_ROOT_INO)
		make_directory(c, &inode, ino, 0755, ino);
	else if (is_span_directory(c, ino))
		make_directory(c, &inode, ino, 0, 0);
	write_inode(c, ino, &inode);
}

static void drop(struct check *c, u64 ino)
{
	if (lanefs_ino_index(ino) < LANEFS_FIRST_INDEX)
		reset_reserved(c, ino);
	else
		remove_inode(c, ino);
}

/* The table's block is damaged: all its inodes are lost. */
static void lose_table_block(struct check *c, u64 ino)
{
	u32 d = lanefs_ino_domain(ino);
	u64 first = lanefs_ino_index(ino) / LANEFS_INODES_PER_BLOCK * LANEFS_INODES_PER_BLOCK;
	u64 end = first + LANEFS_INODES_PER_BLOCK;

	if (c->lost_from == lanefs_ino(d, first))
		return;		/* reported */
	c->lost_from = lanefs_ino(d, first);
	if (end > c->domain_inodes)
		end = c->domain_inodes;
	if (!can_repair(&c->report, "the block of the inode table with inodes %llu to %llu is damaged",
		      lanefs_ino(d, first), lanefs_ino(d, end - 1)))
		return;
	for (u64 index = first; index < end; index++)
		if (index < LANEFS_FIRST_INDEX)
			reset_reserved(c, lanefs_ino(d, index));
		else if (get_bit(c->domain[d].inode_bits, index))
			remove_inode(c, lanefs_ino(d, index));
}

static bool must_be_empty(const struct check *c, u64 ino)
{
	return lanefs_ino_index(ino) < LANEFS_FIRST_INDEX && ino != LANEFS_ROOT_INO &&
	       !is_span_directory(c, ino);
}

static bool is_zero(const struct lanefs_dinode *inode)
{
	const struct lanefs_dinode nothing = { 0 };

	return !memcmp(inode, &nothing, sizeof(nothing));
}

/* Why it cannot be an inode at all; NULL: it can. */
static const char *no_inode(const struct check *c, u64 ino, const struct lanefs_dinode *inode)
{
	u16 mode = le16_to_cpu(inode->di_mode);

	if (le64_to_cpu(inode->di_ino) != ino)
		return "has the number of another inode";
	if (!type_of_mode(mode))
		return "has no type";
	if (!S_ISDIR(mode) && (ino == LANEFS_ROOT_INO || is_span_directory(c, ino)))
		return "is not a directory";
	return NULL;
}

/* Whether a crash has interrupted a shift of its extents. */
static bool is_shifted(struct check *c, u64 ino, const struct lanefs_dinode *inode)
{
	u64 at = le32_to_cpu(inode->di_shift_at), by = le32_to_cpu(inode->di_shift_by);

	return by && find_record(c, ino)->orphan && S_ISREG(le16_to_cpu(inode->di_mode)) &&
	       at + by <= LANEFS_MAX_FILE_BLOCKS &&
	       le64_to_cpu(inode->di_size) > by * LANEFS_BLOCK_SIZE;
}

static void check_fields(struct check *c, u64 ino, struct lanefs_dinode *inode, bool *write)
{
	u16 mode = le16_to_cpu(inode->di_mode);
	u32 flags = is_span_directory(c, ino) ? 0 : lanefs_flags_for(mode);
	__le32 *ns[] = { &inode->di_atime_ns, &inode->di_mtime_ns, &inode->di_ctime_ns,
			 &inode->di_btime_ns };

	FIELD(0, inode->di_reserved0, "a reserved field");
	if (!is_shifted(c, ino, inode)) {
		FIELD(0, inode->di_shift_at, "the place of a shift");
		FIELD(0, inode->di_shift_by, "the number of blocks of a shift");
	}
	FIELD(cpu_to_le32(le32_to_cpu(inode->di_flags) & flags), inode->di_flags, "the flag word");
	if (!S_ISCHR(mode) && !S_ISBLK(mode))
		FIELD(0, inode->di_rdev, "the device number");
	if (!S_ISDIR(mode) || is_span_directory(c, ino))
		FIELD(0, inode->di_parent, "the parent");
	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++)
		if (le32_to_cpu(*ns[i]) >= SECOND)
			FIELD(0, *ns[i], "the fraction of a time");
}

static void ignore_entry(struct scan *scan, const struct entry *entry)
{
	(void)scan;
	(void)entry;
}

static void check_directory(struct check *c, u64 ino, struct lanefs_dinode *inode, bool *write)
{
	struct scan scan = {
		.walk = { .check = c, .ino = ino, .inode = inode, .on_block = claim_block },
		.each = ignore_entry,
	};

	scan_directory(&scan);
	if (scan.walk.damaged) {
		edit_rebuild(c, ino);
		return;
	}
	check_size(c, ino, inode, scan.walk.leaves * LANEFS_BLOCK_SIZE, write);
	check_blocks(c, ino, inode, scan.walk.blocks, write);
}

/* Why the target cannot be read; NULL: it can. */
static const char *bad_symlink(struct check *c, u64 ino, const struct lanefs_dinode *inode,
			       u64 *blocks)
{
	u64 size = le64_to_cpu(inode->di_size), number;
	u16 level = le16_to_cpu(inode->di_level);
	const struct lanefs_index *index = (const void *)inode->di_root;
	u8 block[LANEFS_BLOCK_SIZE], joined[LANEFS_SYMLINK_MAX];
	const u8 *target = inode->di_root;

	*blocks = 0;
	if (!size || size > LANEFS_SYMLINK_MAX)
		return "has a wrong size";
	if (level != (size > LANEFS_INLINE_SYMLINK) || le16_to_cpu(inode->di_count) != level)
		return "has no target";
	if (level) {
		number = le64_to_cpu(index->ix_block);
		if (domain_of_block(c, number) != &c->domain[lanefs_ino_domain(ino)] ||
		    index->ix_key)
			return "has no target";
		read_block(c, number, block);
		if (!block_good(c, block, LANEFS_MAGIC_SYMLINK, number, ino))
			return "has a damaged target";
		if (!claim(c, number))
			return "has its target in a block that is in use twice";
		*blocks = 1;
		lanefs_symlink_join(joined, size, inode->di_root, block);
		target = joined;
	}
	if (memchr(target, 0, size))
		return "has a target with a zero byte";
	if (!level && target[size])
		return "has a target that is longer than its size";
	return NULL;
}

static void check_symlink(struct check *c, u64 ino, struct lanefs_dinode *inode, bool *write)
{
	u64 blocks;
	const char *problem = bad_symlink(c, ino, inode, &blocks);

	if (!problem)
		check_blocks(c, ino, inode, blocks, write);
	else if (can_repair(&c->report, "inode %llu: the symbolic link %s", ino, problem))
		drop(c, ino);
}

static void check_special(struct check *c, u64 ino, struct lanefs_dinode *inode, bool *write)
{
	const u8 nothing[LANEFS_ROOT_SIZE] = { 0 };

	FIELD(0, inode->di_level, "the level of the tree");
	FIELD(0, inode->di_count, "the number of records");
	check_size(c, ino, inode, 0, write);
	check_blocks(c, ino, inode, 0, write);
	if (memcmp(inode->di_root, nothing, sizeof(nothing)) &&
	    can_repair(&c->report, "inode %llu: it has a tree without blocks", ino)) {
		memset(inode->di_root, 0, sizeof(inode->di_root));
		*write = true;
	}
}

static void note_inode(struct check *c, u64 ino, const struct lanefs_dinode *inode)
{
	struct record *record = find_record(c, ino);
	u16 mode = le16_to_cpu(inode->di_mode);

	record->mode = mode;
	record->nlink = le32_to_cpu(inode->di_nlink);
	record->parent = le64_to_cpu(inode->di_parent);
	record->orphan = get_bit(c->domain[lanefs_ino_domain(ino)].orphan_bits,
				 lanefs_ino_index(ino));
	if (is_span_directory(c, ino))
		return;
	c->files += S_ISREG(mode);
	c->directories += S_ISDIR(mode);
	c->others += !S_ISREG(mode) && !S_ISDIR(mode);
}

static void check_inode(struct check *c, u64 ino)
{
	struct lanefs_dinode inode;
	bool write = false;
	const char *problem;

	if (!read_inode(c, ino, &inode)) {
		lose_table_block(c, ino);
		return;
	}
	if (must_be_empty(c, ino)) {
		if (!is_zero(&inode) &&
		    can_repair(&c->report, "inode %llu: it is reserved, but not empty", ino))
			drop(c, ino);
		return;
	}
	problem = no_inode(c, ino, &inode);
	if (problem) {
		if (can_repair(&c->report, "inode %llu: it %s", ino, problem))
			drop(c, ino);
		return;
	}
	note_inode(c, ino, &inode);
	check_fields(c, ino, &inode, &write);
	check_xattrs(c, ino, &inode, &write);
	switch (le16_to_cpu(inode.di_mode) & S_IFMT) {
	case S_IFDIR:
		check_directory(c, ino, &inode, &write);
		break;
	case S_IFREG:
		check_file_tree(c, ino, &inode, &write);
		break;
	case S_IFLNK:
		check_symlink(c, ino, &inode, &write);
		break;
	default:
		check_special(c, ino, &inode, &write);
	}
	if (write)
		write_inode(c, ino, &inode);
}

static void check_file(struct check *c, u64 ino)
{
	struct lanefs_dinode inode;
	bool write = false;

	if (!S_ISREG(find_record(c, ino)->mode) || !read_inode(c, ino, &inode))
		return;
	check_file_data(c, ino, &inode, &write);
	if (write)
		write_inode(c, ino, &inode);
}

static void for_each_used(struct check *c, void (*each)(struct check *c, u64 ino))
{
	for (u32 d = 0; d < c->domains; d++)
		for (u64 index = 0; index < c->domain_inodes; index++)
			if (get_bit(c->domain[d].inode_bits, index))
				each(c, lanefs_ino(d, index));
}

/* Checks the bits of the reserved inodes. */
static void check_reserved_bits(struct check *c)
{
	for (u32 d = 0; d < c->domains; d++)
		for (u64 index = 0; index < LANEFS_FIRST_INDEX; index++)
			if (!get_bit(c->domain[d].inode_bits, index) &&
			    can_repair(&c->report, "inode %llu: it is reserved, but marked as"
				     " free", lanefs_ino(d, index)))
				set_inode_bit(c, lanefs_ino(d, index), true);
}

void check_inodes(struct check *c)
{
	c->lost_from = UINT64_MAX;
	check_reserved_bits(c);
	for_each_used(c, check_inode);
	check_owners_blocks(c);
	for_each_used(c, check_file);
	apply_edits(c);
}
