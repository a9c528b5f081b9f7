// SPDX-License-Identifier: GPL-2.0-only
/* Inodes that no directory names, and orphans. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "names.h"
#include "tools/common/die.h"

#define LOST "lost+found"

static void match_lost(struct scan *scan, const struct entry *entry)
{
	u64 *found = scan->context;

	if (entry->type == type_of_mode(S_IFDIR) && entry->size == strlen(LOST) &&
	    !memcmp(entry->name, LOST, strlen(LOST)))
		*found = entry->ino;
}

static u64 find_lost(struct check *c)
{
	struct lanefs_dinode inode;
	u64 found = 0;
	struct scan scan = {
		.walk = { .check = c, .ino = LANEFS_ROOT_INO, .inode = &inode, .quiet = true },
		.context = &found, .each = match_lost,
	};

	if (read_inode(c, LANEFS_ROOT_INO, &inode))
		scan_directory(&scan);
	return found;
}

/* A new directory in domain 0, named by the root when the stage ends. 0: no inode is free. */
static u64 make_lost(struct check *c)
{
	struct lanefs_dinode inode;

	for (u64 index = LANEFS_FIRST_INDEX; index < c->domain_inodes; index++) {
		u64 ino = lanefs_ino(0, index);

		if (get_bit(c->domain[0].inode_bits, index) || find_record(c, ino)->mode)
			continue;
		make_directory(c, &inode, ino, 0700, LANEFS_ROOT_INO);
		write_inode(c, ino, &inode);
		set_inode_bit(c, ino, true);
		edit_add(c, LANEFS_ROOT_INO, ino, type_of_mode(S_IFDIR), LOST, strlen(LOST));
		return ino;
	}
	return 0;
}

void connect_lost(struct check *c, u64 ino, u16 mode)
{
	char name[32];

	if (!c->lost_found)
		c->lost_found = find_lost(c);
	if (!c->lost_found)
		c->lost_found = make_lost(c);
	if (!c->lost_found) {
		cannot_mend(&c->report, "there is no inode left for /lost+found");
		return;
	}
	snprintf(name, sizeof(name), "#%llu", ino);
	edit_add(c, c->lost_found, ino, type_of_mode(mode), name, strlen(name));
}

struct cut {
	struct lanefs_extent *extents;
	size_t count;
	u64 end;
};

static void cut_extents(struct walk *walk, const void *records, unsigned int count, u64 low,
			u64 high)
{
	struct cut *cut = walk->context;
	const struct lanefs_extent *extents = records;

	(void)low;
	(void)high;
	cut->extents = reallocate(cut->extents, cut->count + count, sizeof(*cut->extents));
	for (unsigned int i = 0; i < count; i++) {
		u64 first = le32_to_cpu(extents[i].ex_logical);
		u32 raw = le32_to_cpu(extents[i].ex_length);

		if (first >= cut->end)
			return;
		cut->extents[cut->count] = extents[i];
		if (first + (raw & ~LANEFS_EXTENT_UNWRITTEN) > cut->end)
			cut->extents[cut->count].ex_length =
				cpu_to_le32((u32)(cut->end - first) | (raw & LANEFS_EXTENT_UNWRITTEN));
		cut->count++;
	}
}

void cut_to_size(struct check *c, u64 ino)
{
	struct lanefs_dinode inode;
	struct cut cut = { 0 };
	struct walk walk = { .check = c, .ino = ino, .inode = &inode, .quiet = true,
			     .context = &cut, .on_leaf = cut_extents };

	if (!read_inode(c, ino, &inode))
		return;
	cut.end = lanefs_blocks_for(le64_to_cpu(inode.di_size), (u64)LANEFS_BLOCK_SIZE);
	walk_tree(&walk);
	edit_map(c, ino, cut.extents, cut.count);
	set_orphan_bit(c, ino, false);
}
