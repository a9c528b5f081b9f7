/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_CORE_BLOCK_H
#define LANEFS_CORE_BLOCK_H

#include "crc.h"
#include "../format.h"

/* The correct lh_crc of the block at @block. */
static inline u32 lanefs_block_crc(const void *block)
{
	const size_t after = offsetof(struct lanefs_header, lh_crc) + 4;
	u32 zero = 0;
	u32 crc;

	crc = lanefs_crc32c(~0u, block, offsetof(struct lanefs_header, lh_crc));
	crc = lanefs_crc32c(crc, &zero, 4);
	return lanefs_crc32c(crc, (const char *)block + after, LANEFS_BLOCK_SIZE - after);
}

/* Makes the checksum right: the last thing before a metadata block is written. */
static inline void lanefs_block_seal(void *block)
{
	struct lanefs_header *header = block;

	header->lh_crc = cpu_to_le32(lanefs_block_crc(block));
}

/* Whether the checksum is right, of whatever block it is. */
static inline bool lanefs_block_sealed(const void *block)
{
	const struct lanefs_header *header = block;

	return header->lh_crc == cpu_to_le32(lanefs_block_crc(block));
}

/* Whether the header says that the block is what it should be. */
static inline bool lanefs_block_is(const void *block, u32 magic, u64 number, const u8 *uuid)
{
	const struct lanefs_header *header = block;

	return header->lh_magic == cpu_to_le32(magic) && header->lh_block == cpu_to_le64(number) &&
	       !memcmp(header->lh_uuid, uuid, sizeof(header->lh_uuid));
}

/* Whether the block is what it should be and undamaged; says nothing of its body's sense. */
static inline bool lanefs_block_good(const void *block, u32 magic, u64 number, const u8 *uuid)
{
	return lanefs_block_is(block, magic, number, uuid) && lanefs_block_sealed(block);
}

#endif
