/* SPDX-License-Identifier: GPL-2.0-only */
/* Garbage collectors: woken where segments are taken (throttle.c), at work in file/gc.c. */
#ifndef LANEFS_COLLECTOR_H
#define LANEFS_COLLECTOR_H

#include "space/space.h"

#define LANEFS_MOVE_BLOCKS	64	/* read and written together */

/* A block of the victim that may be in use. */
struct lanefs_live {
	u64 ino;
	u64 block;
	u64 copy;	/* 0: it is not to be moved any more */
	u32 logical;
};

/* Its stream is in its own domain; in others, and with ablate=dws, it writes to the domain's. */
struct lanefs_collector {
	struct delayed_work co_work;
	struct lanefs_domain *co_domain;
	int co_cpu;
	bool co_working;
	struct lanefs_stream co_stream;
	struct lanefs_victim co_victim;
	u32 co_moved;		/* of that */
	struct page *co_pages[LANEFS_MOVE_BLOCKS];
	struct lanefs_live co_live[LANEFS_SEGMENT_BLOCKS];
};

static inline bool lanefs_gc_allowed(const struct lanefs_sb *sbi)
{
	return READ_ONCE(sbi->s_collecting) && !READ_ONCE(sbi->s_aborted);
}


#endif
