/* SPDX-License-Identifier: GPL-2.0-only */
/* Which flags (format.h) an inode may have. */
#ifndef LANEFS_CORE_FLAGS_H
#define LANEFS_CORE_FLAGS_H

#ifdef __KERNEL__
#include <linux/stat.h>
#else
#include <sys/stat.h>
#endif

#include "core/shim.h"
#include "format.h"

static inline u32 lanefs_flags_for(u16 mode)
{
	if (S_ISDIR(mode))
		return LANEFS_FLAGS_FILE | LANEFS_FLAG_DIRSYNC;
	return S_ISREG(mode) ? LANEFS_FLAGS_FILE : LANEFS_FLAGS_OTHER;
}

#endif
