/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_CORE_CRC_H
#define LANEFS_CORE_CRC_H

#include "shim.h"

#ifdef __KERNEL__

#include <linux/crc32c.h>

static inline u32 lanefs_crc32c(u32 crc, const void *data, size_t size)
{
	return crc32c(crc, data, size);
}

#else

/*
 * CRC32C (Castagnoli, reflected polynomial 0x82f63b78) of @size bytes at @data,
 * continuing @crc, without inversion before or after: the kernel's crc32c().
 */
u32 lanefs_crc32c(u32 crc, const void *data, size_t size);

#endif

#endif
