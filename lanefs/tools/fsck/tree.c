// SPDX-License-Identifier: GPL-2.0-only
/*
 * Walks over the tree of an inode. Bad blocks are left out; what is in good blocks at a wrong
 * place is still shown, so that it can be saved.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"
#include "tools/common/die.h"

/* The tree's blocks seen so far: no block twice, however the nodes point. */
struct seen {
	u64 *blocks;
	size_t count, room;	/* room: a power of two */
};

static bool add_seen(struct seen *seen, u64 block)
{
	size_t i;

	if (2 * (seen->count + 1) > seen->room) {
		struct seen old = *seen;

		seen->room = old.room ? 2 * old.room : 64;
		seen->blocks = allocate(seen->room, sizeof(*seen->blocks));
		seen->count = 0;
		for (i = 0; i < old.room; i++)
			if (old.blocks[i])
				add_seen(seen, old.blocks[i]);
		free(old.blocks);
	}
	for (i = block * 0x9e3779b97f4a7c15 >> 32 & (seen->room - 1); seen->blocks[i];
	     i = (i + 1) & (seen->room - 1))
		if (seen->blocks[i] == block)
			return false;
	seen->blocks[i] = block;
	seen->count++;
	return true;
}

void damaged(struct walk *walk, const char *format, ...)
{
	char text[256];
	va_list arguments;

	walk->damaged = true;
	if (walk->quiet)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* The caller of the walk repairs it by an edit. */
	can_repair(&walk->check->report, "inode %llu: %s", walk->ino, text);
}

static void walk_node(struct walk *walk, struct seen *seen, const struct lanefs_index *index,
		      unsigned int count, unsigned int level, u64 low, u64 high);

static void walk_child(struct walk *walk, struct seen *seen, u64 number, unsigned int level,
		       u64 low, u64 high)
{
	struct domain *domain = domain_of_block(walk->check, number);
	bool directory = S_ISDIR(le16_to_cpu(walk->inode->di_mode));
	u32 magic = level ? LANEFS_MAGIC_NODE : directory ? LANEFS_MAGIC_DIRENTS :
		    LANEFS_MAGIC_EXTENTS;
	u8 *block;
	const struct lanefs_header *header;
	unsigned int count;

	if (!domain || domain != &walk->check->domain[lanefs_ino_domain(walk->ino)]) {
		damaged(walk, "its tree has block %llu, which is not for metadata of its"
			" domain", number);
		return;
	}
	if (!add_seen(seen, number)) {
		damaged(walk, "its tree has block %llu twice", number);
		return;
	}
	block = allocate(1, LANEFS_BLOCK_SIZE);
	header = (const void *)block;
	read_block(walk->check, number, block);
	count = le16_to_cpu(header->lh_count);
	if (!block_good(walk->check, block, magic, number, walk->ino)) {
		damaged(walk, "block %llu of its tree is damaged", number);
	} else if (le16_to_cpu(header->lh_level) != level) {
		damaged(walk, "block %llu of its tree has a wrong level", number);
	} else if ((!directory || level) && count > LANEFS_NODE_RECORDS) {
		damaged(walk, "block %llu of its tree has %u records", number, count);
	} else if (!walk->on_block || walk->on_block(walk, number)) {
		const void *records = block + LANEFS_HEADER_SIZE;

		if (!count)
			damaged(walk, "block %llu of its tree is empty", number);
		if (header->lh_reserved)
			damaged(walk, "block %llu of its tree has a reserved field set",
				number);
		walk->blocks++;
		walk->leaves += !level;
		if (level)
			walk_node(walk, seen, records, count, level, low, high);
		else if (directory && walk->on_dirents)
			walk->on_dirents(walk, block, low, high);
		else if (walk->on_leaf)
			walk->on_leaf(walk, records, count, low, high);
	}
	free(block);
}

static void walk_node(struct walk *walk, struct seen *seen, const struct lanefs_index *index,
		      unsigned int count, unsigned int level, u64 low, u64 high)
{
	for (unsigned int i = 0; i < count; i++) {
		u64 key = le64_to_cpu(index[i].ix_key);
		u64 from = i ? key : low, to = i + 1 < count ? le64_to_cpu(index[i + 1].ix_key) : high;

		if (i && (key <= le64_to_cpu(index[i - 1].ix_key) || key < low || key > high))
			damaged(walk, "key %llu of its tree is out of order", key);
		walk_child(walk, seen, le64_to_cpu(index[i].ix_block), level - 1, from, to);
	}
}

void walk_tree(struct walk *walk)
{
	unsigned int level = le16_to_cpu(walk->inode->di_level);
	unsigned int count = le16_to_cpu(walk->inode->di_count);
	bool directory = S_ISDIR(le16_to_cpu(walk->inode->di_mode));
	struct seen seen = { 0 };

	walk->damaged = false;
	walk->blocks = walk->leaves = 0;
	if (level > LANEFS_MAX_LEVEL || count > LANEFS_ROOT_RECORDS) {
		damaged(walk, "its tree has level %u and %u records", level, count);
		return;
	}
	if (level && !count)
		damaged(walk, "its tree has level %u, but is empty", level);
	if (!level && directory && count)
		damaged(walk, "it has %u records, but no tree", count);
	if (level)
		walk_node(walk, &seen, (const void *)walk->inode->di_root, count, level, 0,
			  UINT64_MAX);
	else if (!directory && walk->on_leaf)
		walk->on_leaf(walk, walk->inode->di_root, count, 0, UINT64_MAX);
	free(seen.blocks);
}
