// SPDX-License-Identifier: GPL-2.0-only
/* Builds the trees of directories and files anew, from sorted records. */
#include <stdlib.h>

#include "check.h"
#include "tools/common/die.h"

static u64 data_blocks(const struct domain *domain)
{
	return domain->layout.end - domain->layout.data;
}

/* The bit of the block that is looked at after @n others. */
static u64 nth_bit(const struct domain *domain, u64 n)
{
	u64 first = domain->layout.data - domain->layout.base;

	return first + (domain->search - first + n) % data_blocks(domain);
}

/* Free blocks are those that nothing found claims, and first those that the bitmap calls free. */
static u64 search_block(struct domain *domain, bool trust_bitmap)
{
	for (u64 n = 0; n < data_blocks(domain); n++) {
		u64 bit = nth_bit(domain, n);

		if (get_bit(domain->used, bit) || (trust_bitmap && get_bit(domain->block_bits, bit)))
			continue;
		set_bit(domain->used, bit, true);
		domain->search = bit;
		return domain->layout.base + bit;
	}
	return 0;
}

static u64 allocate_block(struct domain *domain)
{
	u64 block = search_block(domain, true);

	return block ? block : search_block(domain, false);
}

bool has_room(struct check *c, u64 ino, u64 blocks)
{
	const struct domain *domain = &c->domain[lanefs_ino_domain(ino)];

	for (u64 n = 0; n < data_blocks(domain) && blocks; n++)
		blocks -= !get_bit(domain->used, nth_bit(domain, n));
	return !blocks;
}

/* A tree that grows: the index entries of the level that is being built. */
struct builder {
	struct check *check;
	u64 ino;
	struct lanefs_index *index;
	size_t count;
	struct built *built;
	u8 block[LANEFS_BLOCK_SIZE];
};

static void start_block(struct builder *b, u32 magic, unsigned int level)
{
	memset(b->block, 0, sizeof(b->block));
	set_header(b->check, b->block, magic, 0, b->ino);
	((struct lanefs_header *)b->block)->lh_level = cpu_to_le16((u16)level);
}

static void finish_block(struct builder *b, u64 first_key)
{
	struct lanefs_header *header = (void *)b->block;
	u64 number = allocate_block(&b->check->domain[lanefs_ino_domain(b->ino)]);

	header->lh_block = cpu_to_le64(number);
	write_block(b->check, number, b->block);
	b->index = reallocate(b->index, b->count + 1, sizeof(*b->index));
	b->index[b->count].ix_key = cpu_to_le64(first_key);
	b->index[b->count++].ix_block = cpu_to_le64(number);
	b->built->blocks++;
}

/* Leaves of extents, and nodes: both have 252 records of 16 bytes. */
static void put_records(struct builder *b, u32 magic, unsigned int level, const void *records,
			size_t count, u64 (*key_of)(const void *record))
{
	const size_t size = sizeof(struct lanefs_index);

	for (size_t at = 0; at < count; at += LANEFS_NODE_RECORDS) {
		size_t n = count - at < LANEFS_NODE_RECORDS ? count - at : LANEFS_NODE_RECORDS;
		const u8 *first = (const u8 *)records + at * size;

		start_block(b, magic, level);
		((struct lanefs_header *)b->block)->lh_count = cpu_to_le16((u16)n);
		memcpy(b->block + LANEFS_HEADER_SIZE, first, n * size);
		finish_block(b, key_of(first));
	}
}

static u64 key_of_index(const void *record)
{
	return le64_to_cpu(((const struct lanefs_index *)record)->ix_key);
}

static u64 key_of_extent(const void *record)
{
	return le32_to_cpu(((const struct lanefs_extent *)record)->ex_logical);
}

/* Nodes above the leaves until what is left fits into the inode. */
static void finish_tree(struct builder *b)
{
	unsigned int level = 1;

	for (; b->count > LANEFS_ROOT_RECORDS; level++) {
		struct lanefs_index *below = b->index;
		size_t count = b->count;

		b->index = NULL;
		b->count = 0;
		put_records(b, LANEFS_MAGIC_NODE, level, below, count, key_of_index);
		free(below);
	}
	if (b->count) {
		b->built->level = (u16)level;
		b->built->count = (u16)b->count;
		memcpy(b->built->root, b->index, b->count * sizeof(*b->index));
	}
	free(b->index);
}

/* The same, and counts. */
static u64 tree_blocks(u64 leaves)
{
	u64 blocks = leaves;

	for (u64 level = leaves; level > LANEFS_ROOT_RECORDS; blocks += level)
		level = lanefs_blocks_for(level, LANEFS_NODE_RECORDS);
	return blocks;
}

u64 map_blocks(size_t count)
{
	return count <= LANEFS_ROOT_RECORDS ? 0 :
	       tree_blocks(lanefs_blocks_for(count, LANEFS_NODE_RECORDS));
}

void build_map(struct check *c, u64 ino, const struct lanefs_extent *extents, size_t count,
	       struct built *built)
{
	struct builder b = { .check = c, .ino = ino, .built = built };

	memset(built, 0, sizeof(*built));
	if (count <= LANEFS_ROOT_RECORDS) {
		built->count = (u16)count;
		if (count)
			memcpy(built->root, extents, count * sizeof(*extents));
		return;
	}
	put_records(&b, LANEFS_MAGIC_EXTENTS, 0, extents, count, key_of_extent);
	finish_tree(&b);
}

static void put_dirent(struct builder *b, size_t at, const struct entry *entry)
{
	struct lanefs_dirent raw = {
		.de_key = cpu_to_le64(entry->key),
		.de_ino = cpu_to_le64(entry->ino),
		.de_rec_len = cpu_to_le16((u16)LANEFS_DIRENT_SIZE(entry->size)),
		.de_name_len = cpu_to_le16(entry->size),
		.de_type = entry->type,
	};

	memcpy(b->block + at, &raw, sizeof(raw));
	memcpy(b->block + at + sizeof(raw), entry->name, entry->size);
}

/* Where the leaf ends that begins with entry @first. */
static size_t leaf_end(const struct entry *entries, size_t first, size_t count)
{
	size_t size = LANEFS_HEADER_SIZE, i;

	for (i = first; i < count; i++) {
		size += LANEFS_DIRENT_SIZE(entries[i].size);
		if (size > LANEFS_BLOCK_SIZE)
			break;
	}
	return i;
}

u64 directory_blocks(const struct entry *entries, size_t count)
{
	u64 leaves = 0;

	for (size_t i = 0; i < count; leaves++)
		i = leaf_end(entries, i, count);
	return tree_blocks(leaves);
}

void build_directory(struct check *c, u64 ino, const struct entry *entries, size_t count,
		     struct built *built)
{
	struct builder b = { .check = c, .ino = ino, .built = built };
	struct lanefs_header *header = (void *)b.block;

	memset(built, 0, sizeof(*built));
	for (size_t i = 0; i < count;) {
		size_t first = i, end = leaf_end(entries, first, count), at = LANEFS_HEADER_SIZE;

		start_block(&b, LANEFS_MAGIC_DIRENTS, 0);
		for (; i < end; i++) {
			put_dirent(&b, at, &entries[i]);
			at += LANEFS_DIRENT_SIZE(entries[i].size);
		}
		header->lh_count = cpu_to_le16((u16)(i - first));
		header->lh_used = cpu_to_le16((u16)at);
		finish_block(&b, entries[first].key);
		built->leaves++;
	}
	finish_tree(&b);
}
