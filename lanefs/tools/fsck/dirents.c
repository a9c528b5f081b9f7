// SPDX-License-Identifier: GPL-2.0-only
/* The entries of a directory: format.h, "Directories" and "Span directories". */
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"
#include "core/namehash.h"
#include "tools/common/die.h"

#define SPAN_PREFIX 8

u64 hash_key(const struct check *c, const void *name, size_t size)
{
	const struct lanefs_hash_key key = { { le64_to_cpu(c->super.sb_hash_seed[0]),
					       le64_to_cpu(c->super.sb_hash_seed[1]) } };

	return LANEFS_HASH_KEY(lanefs_siphash(&key, name, size));
}

u8 type_of_mode(u16 mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return 1;
	case S_IFDIR:
		return 2;
	case S_IFCHR:
		return 3;
	case S_IFBLK:
		return 4;
	case S_IFIFO:
		return 5;
	case S_IFSOCK:
		return 6;
	case S_IFLNK:
		return 7;
	default:
		return 0;
	}
}

static const char *bad_name(const u8 *name, size_t size)
{
	if (memchr(name, '/', size))
		return "that contains a slash";
	if (memchr(name, 0, size))
		return "that contains a zero byte";
	if (name[0] == '.' && (size == 1 || (size == 2 && name[1] == '.')))
		return "that is reserved (. or ..)";
	return NULL;
}

/* Whether an entry of the same hash before had this name; remembers it. */
static bool seen_before(struct scan *scan, const struct entry *entry)
{
	u16 size;

	if (LANEFS_KEY_HASH(entry->key) != LANEFS_KEY_HASH(scan->last_key))
		scan->same_size = 0;
	for (size_t at = 0; at < scan->same_size; at += 2u + size) {
		memcpy(&size, scan->same_hash + at, 2);
		if (size == entry->size && !memcmp(scan->same_hash + at + 2, entry->name, size))
			return true;
	}
	scan->same_hash = reallocate(scan->same_hash, scan->same_size + 2 + entry->size, 1);
	memcpy(scan->same_hash + scan->same_size, &entry->size, 2);
	memcpy(scan->same_hash + scan->same_size + 2, entry->name, entry->size);
	scan->same_size += 2u + entry->size;
	return false;
}

static void take_entry(struct scan *scan, const struct entry *entry, bool reserved_set, u64 low,
		       u64 high)
{
	struct walk *walk = &scan->walk;
	size_t prefix = is_span_directory(walk->check, walk->ino) ? SPAN_PREFIX : 0;
	const char *problem = bad_name(entry->name + prefix, entry->size - prefix);

	if (problem) {
		damaged(walk, "it has a name %s (key %#llx)", problem, entry->key);
		return;
	}
	if (reserved_set)
		damaged(walk, "entry %#llx has a reserved field set", entry->key);
	if (LANEFS_KEY_HASH(entry->key) !=
	    LANEFS_KEY_HASH(hash_key(walk->check, entry->name, entry->size)))
		damaged(walk, "entry %#llx has a wrong hash", entry->key);
	if (entry->key < low || entry->key >= high ||
	    (scan->entries && entry->key <= scan->last_key))
		damaged(walk, "entry %#llx is out of order", entry->key);
	if (seen_before(scan, entry)) {
		damaged(walk, "entry %#llx has the same name as an earlier entry", entry->key);
		return;
	}
	scan->last_key = entry->key;
	scan->entries++;
	scan->each(scan, entry);
}

static void scan_leaf(struct walk *walk, const void *data, u64 low, u64 high)
{
	struct scan *scan = walk->context;
	const struct lanefs_header *header = data;
	const u8 *block = data;
	size_t prefix = is_span_directory(walk->check, walk->ino) ? SPAN_PREFIX : 0;
	size_t used = le16_to_cpu(header->lh_used), at = LANEFS_HEADER_SIZE;
	unsigned int count = 0;

	if (used < LANEFS_HEADER_SIZE || used > LANEFS_BLOCK_SIZE) {
		damaged(walk, "a leaf of it uses %zu bytes", used);
		used = LANEFS_BLOCK_SIZE;
	}
	for (; at < used; count++) {
		struct lanefs_dirent raw;
		struct entry entry;

		if (used - at < sizeof(raw))
			break;
		memcpy(&raw, block + at, sizeof(raw));
		entry = (struct entry){ .key = le64_to_cpu(raw.de_key),
					.ino = le64_to_cpu(raw.de_ino), .type = raw.de_type,
					.size = le16_to_cpu(raw.de_name_len),
					.name = block + at + sizeof(raw) };
		if (entry.size <= prefix || entry.size > prefix + LANEFS_NAME_MAX ||
		    le16_to_cpu(raw.de_rec_len) != LANEFS_DIRENT_SIZE(entry.size) ||
		    LANEFS_DIRENT_SIZE(entry.size) > used - at)
			break;
		take_entry(scan, &entry, raw.de_reserved[0] | raw.de_reserved[1] |
			   raw.de_reserved[2], low, high);
		at += LANEFS_DIRENT_SIZE(entry.size);
	}
	if (at != used)
		damaged(walk, "a leaf of it is damaged from byte %zu on", at);
	else if (count != le16_to_cpu(header->lh_count))
		damaged(walk, "a leaf of it has %u entries, but its header says %u", count,
			le16_to_cpu(header->lh_count));
}

void scan_directory(struct scan *scan)
{
	scan->walk.context = scan;
	scan->walk.on_dirents = scan_leaf;
	scan->last_key = scan->entries = 0;
	scan->same_hash = NULL;
	scan->same_size = 0;
	walk_tree(&scan->walk);
	free(scan->same_hash);
	scan->same_hash = NULL;
}
