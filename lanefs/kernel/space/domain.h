/* SPDX-License-Identifier: GPL-2.0-only */
/* A domain in memory. Each part of the module above the journal has its own fields in it. */
#ifndef LANEFS_DOMAIN_H
#define LANEFS_DOMAIN_H

#include "lanefs.h"

struct lanefs_collector;
struct lanefs_journal;

/* Where data of a log goes next: within an open segment. */
struct lanefs_stream {
	spinlock_t st_lock;
	u64 st_block;		/* 0: there is no segment */
	u64 st_hole;		/* where the next search for a hole begins (not locked) */
	bool st_collects;	/* it is a collector's */
};

/* A CPU's part of a domain. */
struct lanefs_slot {
	u64 s_state;		/* the journal's (slots.c) */
	u64 s_inode_first;	/* where its inodes begin */
	u64 s_inode_hint;	/* where the next search begins (not locked) */
	atomic64_t s_free;	/* blocks of its own (space.c) */
	s64 s_pending;		/* freed, not stable; of all CPUs together */
	s64 s_delayed;		/* reserved for delayed allocation, with what extent maps may need; the same */
	u64 s_goal;		/* where the next search for blocks begins (not locked) */
	struct lanefs_stream s_stream;	/* of data (streams.c) */
} ____cacheline_aligned_in_smp;

/* Fields that one task writes together share cache lines, apart from fields that others write or read. */
struct lanefs_domain {
	struct lanefs_sb *d_sbi;
	u32 d_id;
	struct lanefs_layout d_layout;
	struct lanefs_journal *d_journal;
	struct lanefs_slot __percpu *d_slots;
	struct lanefs_shard *d_shards;
	unsigned int d_shard_bits;
	s64 d_plenty;		/* blocks in d_free from which CPUs have batches (space.c) */
	u64 d_kept;		/* of a log: blocks for collectors */
	struct lanefs_group *d_groups;
	u32 d_ngroups;
	u64 d_log_start;	/* of a log: where its streams begin; else 0 */
	u32 d_log_first;	/* number of the first segment that they may have */
	u32 d_log_segments;	/* and how many there are, in a row */
	u32 d_segments_kept;	/* free ones that are left to collectors */
	struct lanefs_collector **d_collectors;
	u32 d_ncollectors;
	struct lanefs_segment *d_segments;	/* of all groups */
	unsigned long *d_groups_free;	/* of a log: a bit for each group with free segments */
	struct lanefs_ibitmap *d_ibitmaps;

	/* freed by stable transactions, to be discarded before they are free */
	spinlock_t d_discard_lock;
	struct list_head d_discards;
	struct work_struct d_discard_work;
	struct mutex d_trim_mutex;	/* FITRIM has marked free blocks as in use */

	/* blocks */
	atomic64_t d_free ____cacheline_aligned_in_smp;	/* in no CPU's batch, and not reserved */
	spinlock_t d_batch_lock;	/* batches are gathered, or counted */
	atomic64_t d_returns ____cacheline_aligned_in_smp;	/* how often blocks of the groups became free */

	/* segments of a log: each write looks, who takes or frees one changes */
	atomic_t d_segments_free ____cacheline_aligned_in_smp;
	bool d_barren;		/* collectors found nothing to collect, and nothing was freed since */
	wait_queue_head_t d_wait_segments;	/* writers wait for free segments (throttle.c) */
	struct lanefs_stream d_stream ____cacheline_aligned_in_smp;	/* of collectors without one here */
	spinlock_t d_segments_lock ____cacheline_aligned_in_smp;	/* ablate=lsu: all segments */
	struct mutex d_victims_mutex;	/* ablate=cvs: who looks for a victim */
	atomic_t d_collecting;	/* collectors at work */
	atomic64_t d_victims;	/* since the mount: segments that were collected, */
	atomic64_t d_moved;	/* blocks that were moved, */
	atomic64_t d_holes;	/* and written to holes; */
	atomic64_t d_stalls;	/* how often writers waited for segments, */
	atomic64_t d_stalled;	/* and how many nanoseconds, all together */

	/* the count of what is free (count.c) */
	struct work_struct d_count_work ____cacheline_aligned_in_smp;
	u64 d_count_groups, d_count_inodes;	/* blocks of the bitmaps that are counted next */
	atomic64_t d_counts;	/* blocks that were counted */
	wait_queue_head_t d_wait_count;	/* for more */
	bool d_count_over;
	int d_count_err;	/* that ended it */

	/* bitmaps in memory */
	struct mutex d_bitmaps_mutex ____cacheline_aligned_in_smp;	/* what comes and goes */
	struct list_head d_loaded;	/* groups */
	unsigned long d_nloaded;

	/* inodes */
	struct percpu_counter d_inodes_free ____cacheline_aligned_in_smp;
	struct percpu_counter d_unlinked;	/* in memory, to be deleted when they leave it */
	wait_queue_head_t d_inode_wait;		/* for the end of an eviction */

	struct mutex d_span_mutex ____cacheline_aligned_in_smp;
	struct inode *d_span[LANEFS_MAX_SPAN_DIRS];
} ____cacheline_aligned_in_smp;

#endif
