/* SPDX-License-Identifier: GPL-2.0-only */
/* A domain in memory. Each part of the module has its own fields in it. */
#ifndef LANEFS_DOMAIN_H
#define LANEFS_DOMAIN_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/blk-cgroup.h>
#include <linux/fs.h>
#include <linux/fs_parser.h>
#include <linux/hash.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/percpu_counter.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "format.h"
#include "compat.h"

struct lanefs_collector;
struct lanefs_sb;
struct lanefs_txn;

/* Where data of a log goes next: within an open segment. */
struct lanefs_stream {
	spinlock_t st_lock;
	u64 st_block;		/* 0: there is no segment */
	u64 st_hole;		/* where the next search for a hole begins (not locked) */
	bool st_collects;	/* it is a collector's */
};

/* A CPU's part of a domain (slots.c). */
struct lanefs_slot {
	u64 s_state;		/* core/slot.h */
	u64 s_inode_first;	/* where its inodes begin */
	u64 s_inode_hint;	/* where the next search begins (not locked) */
	atomic64_t s_free;	/* blocks of its own (space.c) */
	s64 s_pending;		/* freed, not stable; of all CPUs together */
	s64 s_delayed;		/* reserved for delayed allocation, with what extent maps may need; the same */
	u64 s_goal;		/* where the next search for blocks begins (not locked) */
	struct lanefs_stream s_stream;	/* of data (segments.c) */
} ____cacheline_aligned_in_smp;

/* Fields that one task writes together share cache lines, apart from fields that others write or read. */
struct lanefs_domain {
	struct lanefs_sb *d_sbi;
	u32 d_id;
	struct lanefs_layout d_layout;
	unsigned int j_max_txn;		/* blocks */
	struct task_struct *j_commit_task;
	struct task_struct *j_checkpoint_task;
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

	/* cache of metadata blocks */
	struct xarray d_cache ____cacheline_aligned_in_smp;
	spinlock_t d_cache_lock;
	struct list_head d_cache_list;
	unsigned long d_cache_count;

	/* journal: each handle */
	spinlock_t j_lock ____cacheline_aligned_in_smp;
	struct lanefs_txn *j_running;
	u64 j_running_seq;	/* its sequence, or 0 */
	u64 j_free;		/* blocks of the journal */
	wait_queue_head_t j_wait_join;		/* handles wait for a new transaction or space */
	struct list_head j_waiters;		/* oldest first */
	u64 j_held_seq;		/* up to this transaction only handles of one domain join, */
	u64 j_held_ticket;	/* and those that have waited for longer */
	unsigned int j_untied;	/* handles that have joined, and join others, but have not tied them */

	/* journal: each commit */
	struct lanefs_txn *j_committing ____cacheline_aligned_in_smp;
	u64 j_next_seq;
	u64 j_committed;	/* highest sequence on disk */
	u64 j_stable;		/* highest stable sequence */
	u64 j_tied;		/* highest sequence that needs something of another domain */
	u64 j_wanted;		/* commit up to this sequence */
	u64 j_head;		/* where the next transaction goes: block of the journal */
	struct list_head j_log;	/* transactions in the log, from j_tail_seq, by sequence */
	struct mutex j_commit_mutex;	/* held by the committer */
	struct mutex j_stable_mutex;
	wait_queue_head_t j_wait_drained;	/* the commit waits for handles */
	wait_queue_head_t j_wait_committed[2];	/* by the transaction's sequence, modulo 2 */
	wait_queue_head_t j_wait_helped;	/* a commit or checkpoint waits for helpers */
	struct lanefs_coop *j_log_coop;	/* what is written of the log now (coop.c) */
	wait_queue_head_t j_wait_commit_work;

	/* journal: the checkpoint */
	u64 j_tail_seq ____cacheline_aligned_in_smp;
	u64 j_tail;
	wait_queue_head_t j_wait_checkpoint_work;
	bool j_checkpoint_wanted;
	spinlock_t d_home_lock;
	struct list_head d_home;	/* stable blocks that are not in place yet */
	struct mutex j_checkpoint_mutex;
	struct lanefs_coop *j_home_coop;	/* what is written in place now (coop.c) */

	/* freed by stable transactions, to be discarded before they are free */
	spinlock_t d_discard_lock;
	struct list_head d_discards;
	struct work_struct d_discard_work;

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
