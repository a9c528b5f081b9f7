/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_CORE_EXTENTS_H
#define LANEFS_CORE_EXTENTS_H

#include "shim.h"
#include "../format.h"

/*
 * Sorted arrays of extents, as in an inode's root or in a leaf block. The functions that change
 * one take @count records with room for @room, and return the new count, or a negative errno and
 * leave the array as it was: -ENOSPC: it does not fit, -EEXIST: it overlaps.
 */

static inline u32 lanefs_extent_length(const struct lanefs_extent *extent)
{
	return le32_to_cpu(extent->ex_length) & ~LANEFS_EXTENT_UNWRITTEN;
}

static inline bool lanefs_extent_unwritten(const struct lanefs_extent *extent)
{
	return le32_to_cpu(extent->ex_length) & LANEFS_EXTENT_UNWRITTEN;
}

/* The first logical block behind the extent. */
static inline u64 lanefs_extent_end(const struct lanefs_extent *extent)
{
	return (u64)le32_to_cpu(extent->ex_logical) + lanefs_extent_length(extent);
}

/* Whether the array is one that the functions below accept: sorted, no overlap, in range. */
bool lanefs_extents_valid(const struct lanefs_extent *extents, unsigned int count);

/* The last extent that begins at or before @logical, which need not contain it; -1: none. */
int lanefs_extents_find(const struct lanefs_extent *extents, unsigned int count, u32 logical);

/* The record of index entry that covers @key, of @count > 0: 0 also for what lies before it. */
unsigned int lanefs_index_find(const struct lanefs_index *index, unsigned int count, u64 key);

/* Adds an extent, joining it with its neighbours where they are contiguous and of one kind. */
int lanefs_extents_insert(struct lanefs_extent *extents, unsigned int count, unsigned int room,
			  const struct lanefs_extent *extent);

/* Takes the logical blocks @first to @end - 1 out, wherever they are mapped. */
int lanefs_extents_remove(struct lanefs_extent *extents, unsigned int count, unsigned int room,
			  u32 first, u64 end);

/*
 * Maps the logical blocks of @extent as it says, whatever was mapped there before. -ENOSPC where the
 * result would need more room but for neighbours that could be joined.
 */
int lanefs_extents_replace(struct lanefs_extent *extents, unsigned int count, unsigned int room,
			   const struct lanefs_extent *extent);

/*
 * Makes the unwritten blocks among @first to @end - 1 written ones, and joins
 * what then fits together. -ENOSPC as above.
 */
int lanefs_extents_convert(struct lanefs_extent *extents, unsigned int count, unsigned int room,
			   u32 first, u64 end);

/* Makes two extents of the one that has @at and the block before it, if there is one. -ENOSPC as above. */
int lanefs_extents_split(struct lanefs_extent *extents, unsigned int count, unsigned int room, u32 at);

/*
 * Moves the extents from logical block @first on, where one begins, by @by blocks: up, or down by no
 * more than the hole before them. Those that then fit together are joined. The new count.
 */
unsigned int lanefs_extents_shift(struct lanefs_extent *extents, unsigned int count, u64 first, s64 by);

#endif
