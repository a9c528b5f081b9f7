// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bidirectional index: each name of an inode of another domain (a shadow entry) has one remote
 * entry in the inode's domain, and the other way round. Both are collected, sorted and merged.
 */
#include <stdlib.h>

#include "core/namehash.h"
#include "names.h"
#include "tools/common/die.h"

/* One side of a pair. Two names of a directory with the same 64-bit hash do not happen. */
struct half {
	u64 hash;	/* of the remote entry's name: the directory's number and the name */
	u64 dir;
	u64 ino;
	u8 type;
	u64 span;	/* remote: where it lies; shadow: 0 */
	u64 key;	/* remote: its key; shadow: its key in dir */
};

static bool span_kept(const struct check *c)
{
	return le64_to_cpu(c->super.sb_ro_compat) & LANEFS_RO_COMPAT_SPAN;
}

static void add_half(struct check *c, const struct half *half)
{
	if (c->half_count == c->half_room) {
		c->half_room = c->half_room ? 2 * c->half_room : 256;
		c->halves = reallocate(c->halves, c->half_room, sizeof(*c->halves));
	}
	c->halves[c->half_count++] = *half;
}

static size_t remote_name(u8 *remote, u64 dir, const void *name, size_t size)
{
	__le64 number = cpu_to_le64(dir);

	memcpy(remote, &number, 8);
	memcpy(remote + 8, name, size);
	return 8 + size;
}

static u64 hash_of(const struct check *c, const void *remote, size_t size)
{
	const struct lanefs_hash_key key = { { le64_to_cpu(c->super.sb_hash_seed[0]),
					       le64_to_cpu(c->super.sb_hash_seed[1]) } };

	return lanefs_siphash(&key, remote, size);
}

void note_shadow(struct check *c, u64 dir, const struct entry *entry)
{
	u8 remote[8 + LANEFS_NAME_MAX];
	size_t size;

	if (!span_kept(c) || lanefs_ino_domain(dir) == lanefs_ino_domain(entry->ino))
		return;
	size = remote_name(remote, dir, entry->name, entry->size);
	add_half(c, &(struct half){ .hash = hash_of(c, remote, size), .dir = dir,
				    .ino = entry->ino, .type = entry->type,
				    .key = entry->key });
}

static u64 span_directory_of(const struct check *c, u64 ino, u64 key)
{
	return lanefs_ino(lanefs_ino_domain(ino), LANEFS_SPAN_INDEX +
			  LANEFS_KEY_HASH(key) % le32_to_cpu(c->super.sb_span_dirs));
}

void note_remote(struct check *c, u64 span, const struct entry *entry)
{
	__le64 dir;

	if (span_directory_of(c, entry->ino, entry->key) != span) {
		if (can_repair(&c->report, "span directory %llu: entry %#llx of inode %llu belongs"
			     " to another span directory", span, entry->key, entry->ino))
			edit_remove(c, span, entry->key);
		return;
	}
	memcpy(&dir, entry->name, 8);
	add_half(c, &(struct half){ .hash = hash_of(c, entry->name, entry->size),
				    .dir = le64_to_cpu(dir), .ino = entry->ino,
				    .type = entry->type, .span = span, .key = entry->key });
}

static int compare_pair(const struct half *x, const struct half *y)
{
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	if (x->dir != y->dir)
		return x->dir < y->dir ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->type < y->type ? -1 : x->type > y->type;
}

static int by_pair(const void *a, const void *b)
{
	const struct half *x = a, *y = b;
	int order = compare_pair(x, y);

	return order ? order : x->span < y->span ? -1 : x->span > y->span;
}

/* The shadow entry's name is read once more, to make its remote entry. */
static void add_remote(struct scan *scan, const struct entry *entry)
{
	const struct half *shadow = scan->context;
	struct check *c = scan->walk.check;
	u8 remote[8 + LANEFS_NAME_MAX];
	size_t size;

	if (entry->key != shadow->key)
		return;
	size = remote_name(remote, shadow->dir, entry->name, entry->size);
	edit_add(c, span_directory_of(c, entry->ino, hash_key(c, remote, size)), entry->ino,
		 entry->type, remote, size);
}

static void repair_shadow(struct check *c, struct half *shadow)
{
	struct lanefs_dinode inode;
	struct scan scan = {
		.walk = { .check = c, .ino = shadow->dir, .inode = &inode, .quiet = true },
		.context = shadow, .each = add_remote,
	};

	if (can_repair(&c->report, "directory %llu: entry %#llx of inode %llu has no remote entry",
		     shadow->dir, shadow->key, shadow->ino) && read_inode(c, shadow->dir, &inode))
		scan_directory(&scan);
}

static void repair_remote(struct check *c, const struct half *remote)
{
	if (can_repair(&c->report, "span directory %llu: entry %#llx of inode %llu matches no"
		     " name in directory %llu", remote->span, remote->key, remote->ino,
		     remote->dir))
		edit_remove(c, remote->span, remote->key);
}

void check_span(struct check *c)
{
	size_t i = 0;

	if (c->half_count)
		qsort(c->halves, c->half_count, sizeof(*c->halves), by_pair);
	while (i < c->half_count) {
		struct half *half = &c->halves[i++];

		/* A shadow sorts before its remote entry. */
		if (half->span)
			repair_remote(c, half);
		else if (i < c->half_count && c->halves[i].span &&
			 !compare_pair(half, &c->halves[i]))
			i++;
		else
			repair_shadow(c, half);
	}
	c->half_count = 0;
}
