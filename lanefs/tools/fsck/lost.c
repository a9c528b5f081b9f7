// SPDX-License-Identifier: GPL-2.0-only
/* Inodes that no directory names, and orphans. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "names.h"
#include "tools/common/die.h"

#define LOST "lost+found"

static void scan_names(struct check *c, u64 dir, void *context,
		       void (*each)(struct scan *scan, const struct entry *entry))
{
	struct lanefs_dinode inode;
	struct scan scan = {
		.walk = { .check = c, .ino = dir, .inode = &inode, .quiet = true },
		.context = context, .each = each,
	};

	if (read_inode(c, dir, &inode))
		scan_directory(&scan);
}

static void match_lost(struct scan *scan, const struct entry *entry)
{
	struct entry *found = scan->context;

	if (entry->size == strlen(LOST) && !memcmp(entry->name, LOST, strlen(LOST)))
		*found = *entry;
}

static void note_hash(struct scan *scan, const struct entry *entry)
{
	struct check *c = scan->walk.check;

	if (c->lost_count == c->lost_room) {
		c->lost_room = c->lost_room ? 2 * c->lost_room : 64;
		c->lost_hashes = reallocate(c->lost_hashes, c->lost_room, sizeof(*c->lost_hashes));
	}
	c->lost_hashes[c->lost_count++] = LANEFS_KEY_HASH(entry->key);
}

/* Whether names can be added to what an entry says is a directory. */
static bool is_directory(struct check *c, u64 ino)
{
	const struct record *record = find_record(c, ino);

	return record && S_ISDIR(record->mode) && lanefs_ino_index(ino) >= LANEFS_FIRST_INDEX;
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

static void open_lost(struct check *c)
{
	struct entry found = { 0 };

	scan_names(c, LANEFS_ROOT_INO, &found, match_lost);
	if (is_directory(c, found.ino)) {
		c->lost_found = found.ino;
		scan_names(c, found.ino, NULL, note_hash);
		return;
	}
	c->lost_found = make_lost(c);
	/* Without this name the other inode is one of those that go there, in the next round. */
	if (c->lost_found && found.size &&
	    can_repair(&c->report, "inode %llu: it is named /lost+found, but is not a directory",
		     found.ino))
		edit_remove(c, LANEFS_ROOT_INO, found.key);
}

static int by_hash(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Other names of the same hash count as well: any name will do that is free. */
static bool is_taken(const struct check *c, const char *name)
{
	u64 hash = LANEFS_KEY_HASH(hash_key(c, name, strlen(name)));

	return c->lost_count && bsearch(&hash, c->lost_hashes, c->lost_count, sizeof(hash), by_hash);
}

void connect_lost(struct check *c, u64 ino, u16 mode)
{
	char name[40];
	int size;

	if (!c->lost_found)
		open_lost(c);
	if (!c->lost_found) {
		cannot_repair(&c->report, "no inode is left for /lost+found");
		return;
	}
	size = snprintf(name, sizeof(name), "#%llu", ino);
	for (unsigned int n = 1; is_taken(c, name); n++)
		snprintf(name + size, sizeof(name) - (size_t)size, ".%u", n);
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
