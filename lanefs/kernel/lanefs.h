/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all parts of the module share: the mount, its options, an inode in memory. Read format.h
 * first. Folders call only those below: super/, dir/, file/, inode/, tree/, space/, journal/,
 * core/.
 *
 * Locks, outermost first:
 *   VFS locks (i_rwsem, s_vfs_rename_mutex), mapping locks; s_space_mutex; s_umount, which is polled
 *   s_writeout (SRCU), folio locks
 *   a handle (lanefs_handle_start() to lanefs_handle_stop()): a domain's commit waits for its
 *   handles.
 *     A task that waits for one domain to let it in holds no handle of another.
 *     lockdep knows handles as s_handle_map, and who may wait for a commit by lanefs_may_wait().
 *   li_tree_sem or li_xattr_sem of an inode; d_span_mutex of a domain. Delayed allocation
 *     (delalloc.c) takes li_tree_sem without a handle, and opens none below it.
 *   sh_mutex of a shard of a domain's inodes
 *   d_trim_mutex, then d_bitmaps_mutex of a domain
 *   b_mutex of a metadata block
 *   spinlocks: a stream's lock is held around g_lock, and g_lock around d_segments_lock
 *     (ablate=lsu). None of j_lock, t_lock, j_home_lock, j_cache_lock, d_discard_lock, d_batch_lock,
 *     li_journal_lock, li_io_lock and li_writeout_lock is within another of lanefs, but the kernel's
 *     are within some: those of j_cache, of work queues and of wait queues.
 *
 * Outside of handles: s_super_mutex, with nothing within it; j_commit_mutex of a domain, with which
 * its handles are waited for; j_checkpoint_mutex, then j_stable_mutex, which both exclude only each
 * domain's own processing of what is stable. A commit takes the last one when it is done.
 */
#ifndef LANEFS_H
#define LANEFS_H

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

#define LANEFS_SUPER_MAGIC	LANEFS_MAGIC_SUPER
#define LANEFS_SECTOR_SHIFT	(LANEFS_BLOCK_SHIFT - SECTOR_SHIFT)

struct lanefs_domain;
struct lanefs_journal;
struct lanefs_journal_ops;

enum lanefs_placement {
	LANEFS_PLACE_LANE,
	LANEFS_PLACE_ROUNDROBIN,
	LANEFS_PLACE_SINGLE,
};

enum lanefs_journal_mode {
	LANEFS_JOURNAL_CONCURRENT,	/* join by slots; commits as with parallel */
	LANEFS_JOURNAL_PARALLEL,	/* a waiter commits itself, and others help */
	LANEFS_JOURNAL_SERIAL,
};

enum lanefs_victims {
	LANEFS_VICTIMS_GREEDY,
	LANEFS_VICTIMS_COSTBENEFIT,
};

enum lanefs_strict {
	LANEFS_STRICT_OFF,
	LANEFS_STRICT_ON,
};

/* Mechanisms that the mount option `ablate` turns off: a lock, or a count that all share, is back. */
enum lanefs_mechanism {
	LANEFS_ABLATE_INODES	= BIT(0),	/* icache.c */
	LANEFS_ABLATE_IOLOCK	= BIT(1),	/* overwrite.c */
	LANEFS_ABLATE_READPATH	= BIT(2),	/* readpath.c */
	LANEFS_ABLATE_FSYNC	= BIT(3),	/* writeout.c */
	LANEFS_ABLATE_RECOVERY	= BIT(4),	/* recovery.c */
	LANEFS_ABLATE_GC	= BIT(5),	/* gc.c; the rest are ScaleLFS's techniques */
	LANEFS_ABLATE_SVP	= BIT(6),	/* file.c */
	LANEFS_ABLATE_DWS	= BIT(7),	/* gc.c */
	LANEFS_ABLATE_LSU	= BIT(8),	/* segments.c */
	LANEFS_ABLATE_CVS	= BIT(9),	/* victims.c */
	LANEFS_ABLATE_DPB	= BIT(10),	/* gc.c */
};

/* Of a log. */
#define LANEFS_ABLATE_LOG	(LANEFS_ABLATE_GC | LANEFS_ABLATE_SVP | LANEFS_ABLATE_DWS | \
				 LANEFS_ABLATE_LSU | LANEFS_ABLATE_CVS | LANEFS_ABLATE_DPB)
/* A remount does not change them. */
#define LANEFS_ABLATE_FIXED	(LANEFS_ABLATE_INODES | LANEFS_ABLATE_RECOVERY)

/* Each of the first four is one of the values above (options.c). */
struct lanefs_options {
	unsigned int placement;
	unsigned int journal;
	unsigned int victims;
	unsigned int strict;
	unsigned int ablate;	/* of enum lanefs_mechanism */
	bool discard;
	bool norecovery;	/* the disk as it is: read-only to the end of the mount */
};

struct lanefs_sb {
	struct super_block *s_vfs;
	const struct lanefs_journal_ops *s_journal_ops;
	void (*s_set_ops)(struct inode *inode);		/* i_op, i_fop and a_ops by its type */
	u32 s_domains;
	struct lanefs_domain **s_domain;
	struct lanefs_journal **s_journal;	/* of the domains */
	u8 s_uuid[16];
	u64 s_hash_seed[2];
	u64 s_epoch;
	u64 s_ro_compat;
	u32 s_span_dirs;
	u64 s_domain_start;
	u64 s_domain_blocks;
	u64 s_domain_inodes;
	struct lanefs_options s_options;
	u64 s_incompat;
	bool s_aborted;		/* the disk is left as it is; recovery at the next mount */
	bool s_shutdown;	/* aborted, and reads fail as well */
	bool s_damaged;		/* to be noted in the superblock */
	bool s_started;		/* journals run, and take handles */
	struct lockdep_map s_handle_map;
	wait_queue_head_t s_wait_flushed;	/* commits that share a flush (flush.c) */
	unsigned long s_limited[64];	/* groups without CPU time, by hash: until then (throttled.c) */
	atomic64_t s_tickets;	/* of those who wait to join, as old as the number is small */
	struct page *s_super;	/* block 0 */
	struct mutex s_super_mutex;	/* what changes in it, and its writing */
	struct mutex s_space_mutex;	/* who makes room for data (space.c) */
	struct srcu_struct s_writeout;	/* read while an fsync writes a page (writeout.c) */
	struct workqueue_struct *s_io_done;
	struct workqueue_struct *s_collect;
	bool s_collecting;	/* collectors may work */
	struct workqueue_struct *s_count;
	int (*s_count_step)(struct lanefs_domain *domain);	/* counts some of what is free (count.c) */
	unsigned int s_gc_low;	/* percent of a domain's segments: they begin where fewer are free */
	struct kobject s_kobj;	/* of a log (sysfs.c) */
	struct completion s_kobj_gone;
	struct lanefs_shrinker s_shrinker;
	struct lanefs_shrinker s_groups_shrinker;
};

struct lanefs_inode {
	u32 li_domain;
	u32 li_flags;
	u16 li_level;
	u16 li_count;
	u8 li_root[LANEFS_ROOT_SIZE] __aligned(8);
	struct rw_semaphore li_tree_sem;	/* regular files: the tree; others: VFS locks */
	struct rw_semaphore li_xattr_sem;	/* li_xattr and its block */
	loff_t li_disk_size;			/* di_size: what was written back */
	u32 li_shift_at;			/* a shift that is under way (shift.c), by li_tree_sem */
	u32 li_shift_by;
	u64 li_parent;
	u64 li_xattr;
	u64 li_blocks;
	u64 li_goal;				/* where to look for data blocks */
	u32 li_map_seq;				/* counts the changes of the extent map */
	spinlock_t li_journal_lock;		/* the copy of the inode into its table block */
	bool li_orphan;
	bool li_preallocated;			/* blocks past the end to be given back on close */
	bool li_fallocating;			/* no preallocation: close() could not tell it apart */
	bool li_written;			/* blocks were reserved since one of these was opened */
	atomic_t li_writers;			/* open files that can write */
	struct xarray li_delayed;		/* reserved blocks (delalloc.c), by li_tree_sem */
	u64 li_delayed_blocks;
	u64 li_delayed_runs;			/* of consecutive ones */
	u64 li_delayed_meta;			/* set aside for the extent map */
	u64 li_rewritten;			/* blocks that are being written, and not mapped yet (rewrite.c) */
	u64 li_rewritten_runs;			/* of consecutive ones, at most */
	u64 li_rewritten_next;			/* the logical block behind the last of them */
	struct timespec64 li_btime;
	struct lanefs_buf *li_buf;		/* its block of the inode table */
	u64 li_seq;				/* last transaction that changed it */
	u64 li_data_seq;			/* the same, but for times only */
	spinlock_t li_writeout_lock;		/* the next two (writeout.c) */
	struct list_head li_writeouts;		/* pages that fsyncs write */
	u64 li_writeout_seq;			/* of the next one */
	struct rw_semaphore li_collect_sem;	/* ablate=svp: writers, against a collector */
	atomic_t li_next_domain;		/* placement=roundrobin */
	atomic_t li_cached;			/* how often pages came into the cache (readpath.c) */
	unsigned long li_shared;		/* jiffies: when many read a page last */
	spinlock_t li_io_lock;
	struct list_head li_io_done;		/* I/O ends to be processed */
	struct work_struct li_io_work;
	struct inode vfs_inode;
};

static inline struct lanefs_inode *LANEFS_I(const struct inode *inode)
{
	return container_of(inode, struct lanefs_inode, vfs_inode);
}

static inline void lanefs_add_blocks(struct inode *inode, s64 count)
{
	struct lanefs_inode *li = LANEFS_I(inode);

	/* Changes of data and of attributes hold different locks. */
	spin_lock(&inode->i_lock);
	li->li_blocks += count;
	inode->i_blocks = li->li_blocks << LANEFS_SECTOR_SHIFT;
	spin_unlock(&inode->i_lock);
}

static inline bool lanefs_dir_empty(const struct inode *dir)
{
	return !LANEFS_I(dir)->li_level;
}

static inline struct lanefs_sb *LANEFS_SB(const struct super_block *sb)
{
	return sb->s_fs_info;
}

static inline bool lanefs_ablated(const struct lanefs_sb *sbi, enum lanefs_mechanism mechanism)
{
	return READ_ONCE(sbi->s_options.ablate) & mechanism;
}

static inline struct lanefs_journal *lanefs_journal_of(const struct inode *inode)
{
	return LANEFS_SB(inode->i_sb)->s_journal[LANEFS_I(inode)->li_domain];
}

/* Whether the file system is log-structured: only an fsync of one page writes in place (writeout.c). */
static inline bool lanefs_is_log(const struct super_block *sb)
{
	return LANEFS_SB(sb)->s_incompat & LANEFS_INCOMPAT_LOG;
}

static inline struct lanefs_domain *lanefs_domain_of(const struct inode *inode)
{
	return LANEFS_SB(inode->i_sb)->s_domain[LANEFS_I(inode)->li_domain];
}

/* Whether reads fail as well: after a shutdown, or where the device is lost. */
static inline bool lanefs_is_shutdown(const struct super_block *sb)
{
	return READ_ONCE(LANEFS_SB(sb)->s_shutdown);
}

#endif
