/* SPDX-License-Identifier: GPL-2.0-only */
/* The owner of a data block (format.h: the log). */
#ifndef LANEFS_CORE_OWNER_H
#define LANEFS_CORE_OWNER_H

#include "core/shim.h"
#include "format.h"

static inline u64 lanefs_owner_ino(const struct lanefs_owner *owner)
{
	return (u64)le32_to_cpu(owner->ow_ino[1]) << 32 | le32_to_cpu(owner->ow_ino[0]);
}

static inline void lanefs_owner_set(struct lanefs_owner *owner, u64 ino, u32 logical)
{
	owner->ow_logical = cpu_to_le32(logical);
	owner->ow_ino[0] = cpu_to_le32((u32)ino);
	owner->ow_ino[1] = cpu_to_le32((u32)(ino >> 32));
}

/* The entries of a block of owners. */
static inline struct lanefs_owner *lanefs_owners_of(void *block)
{
	return (struct lanefs_owner *)((u8 *)block + LANEFS_HEADER_SIZE);
}

#endif
