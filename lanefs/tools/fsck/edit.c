// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes to directories and extent maps, collected during a stage and made at its end, when all
 * blocks in use are known: each tree that changes is built anew from what is sound in it.
 */
#include <stdlib.h>

#include "inodes.h"
#include "tools/common/die.h"

enum edit_kind { EDIT_REBUILD, EDIT_REMOVE, EDIT_ADD };

struct edit {
	u64 dir;
	enum edit_kind kind;
	u64 key;	/* EDIT_REMOVE */
	u64 ino;	/* EDIT_ADD, with type and name */
	u8 type;
	u16 size;
	u8 *name;
};

struct new_map {
	u64 ino;
	struct lanefs_extent *extents;
	size_t count;
};

static u8 *copy_name(const void *name, size_t size)
{
	u8 *copy = allocate(1, size);

	memcpy(copy, name, size);
	return copy;
}

static struct edit *new_edit(struct check *c, u64 dir, enum edit_kind kind)
{
	if (c->edit_count == c->edit_room) {
		c->edit_room = c->edit_room ? 2 * c->edit_room : 64;
		c->edits = reallocate(c->edits, c->edit_room, sizeof(*c->edits));
	}
	c->edits[c->edit_count] = (struct edit){ .dir = dir, .kind = kind };
	return &c->edits[c->edit_count++];
}

void edit_rebuild(struct check *c, u64 dir)
{
	new_edit(c, dir, EDIT_REBUILD);
}

void edit_remove(struct check *c, u64 dir, u64 key)
{
	new_edit(c, dir, EDIT_REMOVE)->key = key;
}

void edit_add(struct check *c, u64 dir, u64 ino, u8 type, const void *name, size_t size)
{
	struct edit *edit = new_edit(c, dir, EDIT_ADD);

	edit->ino = ino;
	edit->type = type;
	edit->size = (u16)size;
	edit->name = copy_name(name, size);
}

void edit_map(struct check *c, u64 ino, struct lanefs_extent *extents, size_t count)
{
	if (c->map_count == c->map_room) {
		c->map_room = c->map_room ? 2 * c->map_room : 16;
		c->maps = reallocate(c->maps, c->map_room, sizeof(*c->maps));
	}
	c->maps[c->map_count++] = (struct new_map){ ino, extents, count };
}

/* A directory's entries in the making. */
struct listing {
	struct entry *entries;
	size_t count, room;
	const struct edit *edits;
	size_t edit_count;
};

static void list_entry(struct listing *listing, const struct entry *entry)
{
	if (listing->count == listing->room) {
		listing->room = listing->room ? 2 * listing->room : 64;
		listing->entries = reallocate(listing->entries, listing->room,
					      sizeof(*listing->entries));
	}
	listing->entries[listing->count] = *entry;
	listing->entries[listing->count++].name = copy_name(entry->name, entry->size);
}

/* Additions have no key. */
static int by_edit(const void *a, const void *b)
{
	const struct edit *x = a, *y = b;

	if (x->dir != y->dir)
		return x->dir < y->dir ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

static void keep_entry(struct scan *scan, const struct entry *entry)
{
	struct listing *listing = scan->context;

	const struct edit wanted = { .dir = scan->walk.ino, .kind = EDIT_REMOVE,
				     .key = entry->key };

	if (!bsearch(&wanted, listing->edits, listing->edit_count, sizeof(wanted), by_edit))
		list_entry(listing, entry);
}

static int by_hash_then_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return memcmp(x->name, y->name, x->size);
}

/* Sorts by hash, gives each entry the smallest free key, and drops second entries of a name. */
static void give_keys(struct check *c, struct listing *listing)
{
	size_t kept = 0;

	for (size_t i = 0; i < listing->count; i++)
		listing->entries[i].key = hash_key(c, listing->entries[i].name,
						   listing->entries[i].size);
	if (listing->count)
		qsort(listing->entries, listing->count, sizeof(*listing->entries),
		      by_hash_then_name);
	for (size_t i = 0; i < listing->count; i++) {
		struct entry *entry = &listing->entries[i], *last = entry;

		if (kept)
			last = &listing->entries[kept - 1];
		if (kept && LANEFS_KEY_HASH(last->key) == LANEFS_KEY_HASH(entry->key)) {
			u64 number = (last->key & LANEFS_KEY_SEQ_MASK) + 1;

			if ((last->size == entry->size &&
			     !memcmp(last->name, entry->name, entry->size)) ||
			    number > LANEFS_KEY_SEQ_MASK) {
				free((void *)entry->name);
				continue;
			}
			entry->key += number;
		}
		listing->entries[kept++] = *entry;
	}
	listing->count = kept;
}

static bool release_block(struct walk *walk, u64 block)
{
	struct domain *domain = domain_of_block(walk->check, block);
	u64 bit = block - domain->layout.base;

	unclaim(walk->check, block);
	/* It was this inode's alone, so the new tree may have it, whatever the bitmap says. */
	set_bit(domain->block_bits, bit, false);
	if (bit < domain->search)
		domain->search = bit;
	return true;
}

/*
 * Frees the blocks of the old tree; all that is good in them is in memory. Where that and what
 * else is free is too little for a new tree of @blocks, the old one stays as it is.
 */
static bool make_room(struct check *c, u64 ino, const struct lanefs_dinode *inode, u64 blocks)
{
	struct walk release = { .check = c, .ino = ino, .inode = inode, .quiet = true,
				.on_block = release_block };
	struct walk claim = { .check = c, .ino = ino, .inode = inode, .quiet = true,
			      .on_block = claim_block };

	walk_tree(&release);
	if (has_room(c, ino, blocks))
		return true;
	walk_tree(&claim);
	cannot_repair(&c->report, "inode %llu: its domain has no blocks left for a new tree", ino);
	c->stuck = true;
	return false;
}

static void store_tree(struct check *c, u64 ino, struct lanefs_dinode *inode,
		       const struct built *built, u64 data_blocks)
{
	inode->di_level = cpu_to_le16(built->level);
	inode->di_count = cpu_to_le16(built->count);
	inode->di_blocks = cpu_to_le64(built->blocks + data_blocks + !!inode->di_xattr);
	memcpy(inode->di_root, built->root, sizeof(inode->di_root));
	write_inode(c, ino, inode);
}

static void make_anew(struct check *c, u64 dir, const struct edit *edits, size_t count)
{
	struct listing listing = { .edits = edits, .edit_count = count };
	struct lanefs_dinode inode;
	struct scan scan = {
		.walk = { .check = c, .ino = dir, .inode = &inode, .quiet = true },
		.context = &listing, .each = keep_entry,
	};
	struct built built;

	if (!read_inode(c, dir, &inode))
		return;
	scan_directory(&scan);
	for (size_t i = 0; i < count; i++) {
		const struct entry entry = { .ino = edits[i].ino, .type = edits[i].type,
					     .size = edits[i].size, .name = edits[i].name };

		if (edits[i].kind == EDIT_ADD)
			list_entry(&listing, &entry);
	}
	give_keys(c, &listing);
	if (make_room(c, dir, &inode, directory_blocks(listing.entries, listing.count))) {
		build_directory(c, dir, listing.entries, listing.count, &built);
		inode.di_size = cpu_to_le64(built.leaves * LANEFS_BLOCK_SIZE);
		store_tree(c, dir, &inode, &built, 0);
	}
	for (size_t i = 0; i < listing.count; i++)
		free((void *)listing.entries[i].name);
	free(listing.entries);
}

static void make_map(struct check *c, const struct new_map *map)
{
	struct lanefs_dinode inode;
	struct built built;
	u64 data_blocks = 0;

	if (!read_inode(c, map->ino, &inode))
		return;
	if (!make_room(c, map->ino, &inode, map_blocks(map->count)))
		return;
	build_map(c, map->ino, map->extents, map->count, &built);
	for (size_t i = 0; i < map->count; i++)
		data_blocks += le32_to_cpu(map->extents[i].ex_length) & ~LANEFS_EXTENT_UNWRITTEN;
	store_tree(c, map->ino, &inode, &built, data_blocks);
}

void drop_edits(struct check *c)
{
	size_t i;

	for (i = 0; i < c->edit_count; i++)
		free(c->edits[i].name);
	for (i = 0; i < c->map_count; i++)
		free(c->maps[i].extents);
	c->edit_count = c->map_count = 0;
}

void apply_edits(struct check *c)
{
	size_t i, end;

	if (c->edit_count)
		qsort(c->edits, c->edit_count, sizeof(*c->edits), by_edit);
	for (i = 0; i < c->edit_count && c->report.repair; i = end) {
		for (end = i; end < c->edit_count && c->edits[end].dir == c->edits[i].dir;)
			end++;
		make_anew(c, c->edits[i].dir, &c->edits[i], end - i);
	}
	for (i = 0; i < c->map_count && c->report.repair; i++)
		make_map(c, &c->maps[i]);
	drop_edits(c);
}
