/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_CORE_LEAF_H
#define LANEFS_CORE_LEAF_H

#include "shim.h"
#include "../format.h"

/*
 * A leaf block of a directory: packed entries, sorted by key, from byte 64 to byte lh_used.
 * All functions but lanefs_leaf_valid() need a leaf that it accepted. None touches the checksum.
 */

/* Whether all entries lie within the block, in order, with names of a legal length. */
bool lanefs_leaf_valid(const void *leaf, bool span);

/* The first entry with this or a greater key, or NULL. */
struct lanefs_dirent *lanefs_leaf_seek(void *leaf, u64 key);

/* The entry behind @entry, or NULL. */
struct lanefs_dirent *lanefs_leaf_next(void *leaf, struct lanefs_dirent *entry);

/* The entry of that name, whose hash has the key @first (LANEFS_HASH_KEY), or NULL. */
struct lanefs_dirent *lanefs_leaf_lookup(void *leaf, u64 first, const void *name, size_t size);

/*
 * Moves *@key up past the entries that have it and the ones after it, to the smallest that is
 * free as far as this leaf tells. Returns whether the leaf ends before that is certain: then ask
 * the next leaf as well.
 */
bool lanefs_leaf_free_key(void *leaf, u64 *key);

/* Adds an entry. -ENOSPC: no room; -EEXIST: the key is there. */
int lanefs_leaf_insert(void *leaf, u64 key, u64 ino, u8 type, const void *name, size_t size);

void lanefs_leaf_remove(void *leaf, struct lanefs_dirent *entry);

/*
 * Moves the upper half of the entries (by bytes) of @leaf, which has at least two, to the body
 * of @right, and sets the counts of both. Returns the first key of @right.
 */
u64 lanefs_leaf_split(void *leaf, void *right);

#endif
