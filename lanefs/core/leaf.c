// SPDX-License-Identifier: GPL-2.0-only
#include "leaf.h"

static unsigned int leaf_used(const void *leaf)
{
	return le16_to_cpu(((const struct lanefs_header *)leaf)->lh_used);
}

static void leaf_set(void *leaf, unsigned int used, int count)
{
	struct lanefs_header *header = leaf;

	header->lh_used = cpu_to_le16((u16)used);
	header->lh_count = cpu_to_le16((u16)count);
}

static int leaf_count(const void *leaf)
{
	return le16_to_cpu(((const struct lanefs_header *)leaf)->lh_count);
}

static struct lanefs_dirent *entry_at(void *leaf, unsigned int offset)
{
	return (struct lanefs_dirent *)((char *)leaf + offset);
}

static unsigned int offset_of(const void *leaf, const struct lanefs_dirent *entry)
{
	return (unsigned int)((const char *)entry - (const char *)leaf);
}

bool lanefs_leaf_valid(const void *leaf, bool span)
{
	const unsigned int prefix = span ? 8 : 0;
	unsigned int used = leaf_used(leaf), offset = LANEFS_HEADER_SIZE;
	int count = 0;
	u64 last = 0;

	if (used > LANEFS_BLOCK_SIZE)
		return false;
	for (; offset < used; count++) {
		const struct lanefs_dirent *entry = entry_at((void *)leaf, offset);
		unsigned int name_len;

		if (used - offset < sizeof(*entry))
			return false;
		name_len = le16_to_cpu(entry->de_name_len);
		if (name_len < 1 + prefix || name_len > LANEFS_NAME_MAX + prefix ||
		    le16_to_cpu(entry->de_rec_len) != LANEFS_DIRENT_SIZE(name_len) ||
		    used - offset < LANEFS_DIRENT_SIZE(name_len))
			return false;
		if (count && le64_to_cpu(entry->de_key) <= last)
			return false;
		last = le64_to_cpu(entry->de_key);
		if (LANEFS_KEY_HASH(last) >= LANEFS_HASH_MASK)
			return false;
		offset += LANEFS_DIRENT_SIZE(name_len);
	}
	return offset == used && count == leaf_count(leaf);
}

struct lanefs_dirent *lanefs_leaf_seek(void *leaf, u64 key)
{
	unsigned int used = leaf_used(leaf), offset = LANEFS_HEADER_SIZE;

	while (offset < used) {
		struct lanefs_dirent *entry = entry_at(leaf, offset);

		if (le64_to_cpu(entry->de_key) >= key)
			return entry;
		offset += le16_to_cpu(entry->de_rec_len);
	}
	return NULL;
}

struct lanefs_dirent *lanefs_leaf_next(void *leaf, struct lanefs_dirent *entry)
{
	unsigned int offset = offset_of(leaf, entry) + le16_to_cpu(entry->de_rec_len);

	return offset < leaf_used(leaf) ? entry_at(leaf, offset) : NULL;
}

struct lanefs_dirent *lanefs_leaf_lookup(void *leaf, u64 first, const void *name, size_t size)
{
	struct lanefs_dirent *entry = lanefs_leaf_seek(leaf, first);

	for (; entry; entry = lanefs_leaf_next(leaf, entry)) {
		if (LANEFS_KEY_HASH(le64_to_cpu(entry->de_key)) != LANEFS_KEY_HASH(first))
			return NULL;
		if (le16_to_cpu(entry->de_name_len) == size && !memcmp(entry->de_name, name, size))
			return entry;
	}
	return NULL;
}

bool lanefs_leaf_free_key(void *leaf, u64 *key)
{
	struct lanefs_dirent *entry = lanefs_leaf_seek(leaf, *key);

	for (; entry; entry = lanefs_leaf_next(leaf, entry)) {
		if (le64_to_cpu(entry->de_key) != *key)
			return false;
		(*key)++;
	}
	return true;
}

int lanefs_leaf_insert(void *leaf, u64 key, u64 ino, u8 type, const void *name, size_t size)
{
	unsigned int need = LANEFS_DIRENT_SIZE((unsigned int)size), used = leaf_used(leaf);
	struct lanefs_dirent *entry = lanefs_leaf_seek(leaf, key);
	unsigned int offset = entry ? offset_of(leaf, entry) : used;

	if (entry && le64_to_cpu(entry->de_key) == key)
		return -EEXIST;
	if (LANEFS_BLOCK_SIZE - used < need)
		return -ENOSPC;
	entry = entry_at(leaf, offset);
	memmove((char *)entry + need, entry, used - offset);
	memset(entry, 0, need);
	entry->de_key = cpu_to_le64(key);
	entry->de_ino = cpu_to_le64(ino);
	entry->de_rec_len = cpu_to_le16((u16)need);
	entry->de_name_len = cpu_to_le16((u16)size);
	entry->de_type = type;
	memcpy(entry->de_name, name, size);
	leaf_set(leaf, used + need, leaf_count(leaf) + 1);
	return 0;
}

void lanefs_leaf_remove(void *leaf, struct lanefs_dirent *entry)
{
	unsigned int length = le16_to_cpu(entry->de_rec_len), used = leaf_used(leaf);
	unsigned int offset = offset_of(leaf, entry);

	memmove(entry, (char *)entry + length, used - offset - length);
	/* Unused bytes stay zero, so that no deleted name is left in the image. */
	memset((char *)leaf + used - length, 0, length);
	leaf_set(leaf, used - length, leaf_count(leaf) - 1);
}

u64 lanefs_leaf_split(void *leaf, void *right)
{
	unsigned int used = leaf_used(leaf), offset = LANEFS_HEADER_SIZE;
	unsigned int middle = LANEFS_HEADER_SIZE + (used - LANEFS_HEADER_SIZE) / 2;
	int count = leaf_count(leaf), kept = 0;

	/* The first entry stays, and the last one goes, however long they are. */
	do {
		offset += le16_to_cpu(entry_at(leaf, offset)->de_rec_len);
		kept++;
	} while (offset < middle && kept < count - 1);

	memset((char *)right + LANEFS_HEADER_SIZE, 0, LANEFS_BODY_SIZE);
	memcpy((char *)right + LANEFS_HEADER_SIZE, (char *)leaf + offset, used - offset);
	memset((char *)leaf + offset, 0, used - offset);
	leaf_set(right, LANEFS_HEADER_SIZE + used - offset, count - kept);
	leaf_set(leaf, offset, kept);
	return le64_to_cpu(entry_at(right, LANEFS_HEADER_SIZE)->de_key);
}
