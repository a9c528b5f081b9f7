/* SPDX-License-Identifier: GPL-2.0-only */
/* The target of a symlink that has a block (format.h): the rest lies behind the root's index. */
#ifndef LANEFS_CORE_SYMLINK_H
#define LANEFS_CORE_SYMLINK_H

#include "core/shim.h"
#include "format.h"

/* How much of a target of `size` bytes is in the block. */
static inline u32 lanefs_symlink_in_block(u32 size)
{
	return size < LANEFS_BODY_SIZE ? size : LANEFS_BODY_SIZE;
}

static inline void lanefs_symlink_split(const void *target, u32 size, u8 *root, u8 *block)
{
	u32 here = lanefs_symlink_in_block(size);

	memcpy(block + LANEFS_HEADER_SIZE, target, here);
	memcpy(root + sizeof(struct lanefs_index), (const u8 *)target + here, size - here);
}

/* `size` is at most LANEFS_SYMLINK_MAX. */
static inline void lanefs_symlink_join(void *target, u32 size, const u8 *root, const u8 *block)
{
	u32 here = lanefs_symlink_in_block(size);

	memcpy(target, block + LANEFS_HEADER_SIZE, here);
	memcpy((u8 *)target + here, root + sizeof(struct lanefs_index), size - here);
}

#endif
