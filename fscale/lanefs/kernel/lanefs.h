/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations that the parts of the module share. Read format.h first.
 *
 * Locks, outermost first:
 *   VFS locks (i_rwsem, s_vfs_rename_mutex), mapping locks
 *   s_writeout (SRCU), folio locks
 *   a handle (lanefs_begin() to lanefs_end()): the commit of a domain waits for its handles.
 *     A task that waits for one domain to let it in holds no handle of another.
 *     lockdep knows handles as s_handle_map, and who may wait for a commit by lanefs_may_wait().
 *   li_tree_sem or li_xattr_sem of an inode; d_span_mutex of a domain. Delayed allocation
 *     (delalloc.c) takes li_tree_sem without a handle, and opens none below it.
 *   sh_mutex of a shard of a domain's inodes
 *   b_mutex of a metadata block
 *   spinlocks, none within another: g_lock, j_lock, t_lock, d_home_lock, d_discard_lock,
 *     li_log_lock, li_io_lock, li_writeout_lock; d_cache_lock is held around the lock of d_cache, a trim holds
 *     g_lock around d_batch_lock, and a stream's lock is held around g_lock and work queues' locks
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

#include "core/joinlist.h"
#include "format.h"
#include "compat.h"
#include "compat_iomap.h"

#define LANEFS_SUPER_MAGIC	LANEFS_MAGIC_SUPER
#define LANEFS_SECTOR_SHIFT	(LANEFS_BLOCK_SHIFT - SECTOR_SHIFT)

struct lanefs_sb;
struct lanefs_collector;
struct lanefs_domain;
struct lanefs_txn;

/* A metadata block in its domain's cache. b_ref counts the cache itself as one. */
struct lanefs_buf {
	u64 b_block;
	struct lanefs_domain *b_domain;
	atomic_t b_ref;
	unsigned long b_flags;
	u32 b_magic;			/* of the header, once LANEFS_BUF_VALID is set */
	u64 b_owner;
	struct mutex b_mutex;		/* reading it in, exchange of b_page */
	struct page *b_page;		/* the newest contents */
	u8 *b_data;			/* page_address(b_page) */
	struct lanefs_txn *b_txn;	/* running transaction that has changed it */
	struct lanefs_join b_join;	/* in its t_bufs (b_mutex) */
	struct page *b_home;		/* newest stable version that is not in place yet */
	u64 b_home_seq;
	struct list_head b_home_node;	/* in d_home, by b_home_seq */
	struct list_head b_cache_node;
	struct rcu_head b_rcu;
};

/* b_flags */
enum {
	LANEFS_BUF_VALID,	/* read and checked, or new */
	LANEFS_BUF_FROZEN,	/* b_page belongs to a committed transaction: copy before change */
	LANEFS_BUF_WRITING,	/* b_home is being written in place */
	LANEFS_BUF_USED,	/* since the shrinker last looked */
};

/* A block in a transaction that commits or is not stable yet. */
struct lanefs_log_vec {
	struct lanefs_buf *buf;
	struct page *page;
};

struct lanefs_freed {
	struct list_head node;
	u64 start;
	u64 count;
	bool metadata;		/* forget the cached block, revoke its copies in the log */
};

struct lanefs_txn {
	struct lanefs_domain *t_domain;
	u64 t_seq;
	bool t_locked;			/* takes no more handles (j_lock) */
	unsigned int t_handles;		/* open ones, but for those of slots (j_lock) */
	unsigned int t_reserved;	/* blocks: used, and credits of handles and slots (j_lock) */
	unsigned long t_started;	/* jiffies */
	struct lanefs_joinlist t_bufs ____cacheline_aligned_in_smp;
	atomic_t t_joined;		/* blocks in it that were not removed again */
	spinlock_t t_lock ____cacheline_aligned_in_smp;	/* t_freed, t_revokes */
	struct list_head t_freed;
	unsigned int t_revokes;
	bool t_tied;
	u64 *t_needs;			/* by domain; if t_tied (j_lock) */
	struct lanefs_log_vec *t_vec;	/* when it is frozen, t_nbufs of them */
	unsigned int t_nbufs;
	u64 t_log_start;		/* block of the journal */
	u64 t_log_blocks;
	struct list_head t_node;	/* in j_log */
};

/* A segment of the log (segments.c), under g_lock; who looks for a victim reads it without. */
struct lanefs_segment {
	u16 used;			/* bits of g_busy */
	u8 state;
	bool stuck;			/* what is in use was not to be moved, when it was a victim */
	u32 turn;			/* how often it was one */
	u32 changed;			/* jiffies, when bits were set or cleared last */
};

/* A segment that a collector has taken, this time. */
struct lanefs_victim {
	u32 number;			/* of the group */
	u32 first;			/* bit of it */
	u32 turn;
};

enum {
	LANEFS_SEGMENT_USED,
	LANEFS_SEGMENT_FREE,		/* no bit is set */
	LANEFS_SEGMENT_OPEN,		/* a stream's */
	LANEFS_SEGMENT_VICTIM,		/* a collector empties it, */
	LANEFS_SEGMENT_TARGET,		/* and fills it: of both holes are filled if there are no others */
	LANEFS_SEGMENT_OTHER,		/* no stream's: metadata's, or not whole */
};

struct lanefs_group {
	spinlock_t g_lock;		/* g_busy, g_free, and bits in the on-disk bitmap */
	u32 g_bits;
	u32 g_free;
	u32 g_least;			/* of a log: no segment to be collected has fewer in use */
	unsigned long *g_busy;		/* in use, being written, or freed by what is not stable */
	struct lanefs_buf *g_buf;	/* of the bitmap: kept, as it is needed inside of handles */
	struct lanefs_segment *g_segments;	/* of a log: LANEFS_SEGMENTS, or NULL */
} ____cacheline_aligned_in_smp;

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

/* Runs of this many inodes belong to one shard: whole blocks of the table, whole words of bitmaps. */
#define LANEFS_SHARD_RUN	(LANEFS_INODES_PER_BLOCK * 64)
#define LANEFS_MAX_SHARDS	64

/* A part of a domain's inodes (ialloc.c). */
struct lanefs_shard {
	struct mutex sh_mutex;		/* their bits, and the table's blocks that become used */
	struct xarray sh_inodes;	/* in memory, by index (icache.c) */
} ____cacheline_aligned_in_smp;

/* A task that waits to join a domain, for which room is left. */
struct lanefs_waiter {
	struct list_head w_node;
	u64 w_ticket;
	unsigned int w_credits;
};

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
	struct lanefs_buf **d_inode_bits;	/* the blocks of both bitmaps: kept, as they are */
	struct lanefs_buf **d_orphan_bits;	/* needed inside of handles */

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
	spinlock_t d_segments_lock ____cacheline_aligned_in_smp;	/* lsu=off: the states of all segments */
	struct mutex d_victims_mutex;	/* cvs=off: who looks for a victim */
	atomic_t d_collecting;	/* collectors at work */
	atomic64_t d_victims;	/* since the mount: segments that were collected, */
	atomic64_t d_moved;	/* blocks that were moved, */
	atomic64_t d_holes;	/* and written to holes; */
	atomic64_t d_stalls;	/* how often writers waited for segments, */
	atomic64_t d_stalled;	/* and how many nanoseconds, all together */

	/* inodes */
	unsigned long *d_inode_map ____cacheline_aligned_in_smp;
	struct percpu_counter d_inodes_free;
	struct percpu_counter d_unlinked;	/* in memory, to be deleted when they leave it */
	wait_queue_head_t d_inode_wait;		/* for the end of an eviction */

	struct mutex d_span_mutex ____cacheline_aligned_in_smp;
	struct inode *d_span[LANEFS_MAX_SPAN_DIRS];
} ____cacheline_aligned_in_smp;

enum lanefs_placement {
	LANEFS_PLACE_LANE,
	LANEFS_PLACE_ROUNDROBIN,
	LANEFS_PLACE_SINGLE,
};

enum lanefs_inodes {
	LANEFS_INODES_LANE,
	LANEFS_INODES_VFS,
};

enum lanefs_readpath {
	LANEFS_READPATH_RCU,
	LANEFS_READPATH_REF,
};

enum lanefs_fsync {
	LANEFS_FSYNC_LANE,
	LANEFS_FSYNC_VFS,
};

enum lanefs_recovery_mode {
	LANEFS_RECOVERY_PARALLEL,
	LANEFS_RECOVERY_SERIAL,
};

enum lanefs_journal {
	LANEFS_JOURNAL_CONCURRENT,	/* join by slots; commits as with parallel */
	LANEFS_JOURNAL_PARALLEL,	/* a waiter commits itself, and others help */
	LANEFS_JOURNAL_SERIAL,
};

enum lanefs_gc {
	LANEFS_GC_PERCORE,
	LANEFS_GC_SINGLE,
};

enum lanefs_victims {
	LANEFS_VICTIMS_GREEDY,
	LANEFS_VICTIMS_COSTBENEFIT,
};

/* A technique of ScaleLFS's (victims.c, gc.c): without it there is a lock in its place. */
enum lanefs_technique {
	LANEFS_TECHNIQUE_ON,
	LANEFS_TECHNIQUE_OFF,
};

enum lanefs_strict {
	LANEFS_STRICT_OFF,
	LANEFS_STRICT_ON,
};

enum lanefs_iolock {
	LANEFS_IOLOCK_RANGE,
	LANEFS_IOLOCK_INODE,
};

/* Each unsigned int is one of the values above (options.c). */
struct lanefs_options {
	unsigned int placement;
	unsigned int inodes;
	unsigned int iolock;
	unsigned int fsync;
	unsigned int readpath;
	unsigned int recovery;
	unsigned int journal;
	unsigned int gc;
	unsigned int victims;
	unsigned int svp;
	unsigned int dws;
	unsigned int lsu;
	unsigned int cvs;
	unsigned int dpb;
	unsigned int strict;
	bool discard;
	bool norecovery;	/* the disk as it is: read-only to the end of the mount */
};

/* Calls from the journal to what is built on it. */
struct lanefs_journal_ops {
	/* A handle ends with blocks reserved that it did not allocate. */
	void (*unreserve)(struct lanefs_domain *domain, u64 blocks);
	/* The transaction that freed these blocks is stable; takes the record over. */
	void (*freed_stable)(struct lanefs_domain *domain, struct lanefs_freed *freed);
};

struct lanefs_sb {
	struct super_block *s_vfs;
	const struct lanefs_journal_ops *s_journal_ops;
	void (*s_set_ops)(struct inode *inode);		/* i_op, i_fop and a_ops by its type */
	u32 s_domains;
	struct lanefs_domain **s_domain;
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
	bool s_damaged;		/* to be noted in the superblock */
	bool s_started;		/* journals run, and take handles */
	struct lockdep_map s_handle_map;
	atomic64_t s_tickets;	/* of those who wait to join, as old as the number is small */
	struct page *s_super;	/* block 0 */
	struct mutex s_super_mutex;	/* what changes in it, and its writing */
	struct srcu_struct s_writeout;	/* read while an fsync writes a page (writeout.c) */
	struct workqueue_struct *s_io_done;
	struct workqueue_struct *s_collect;
	bool s_collecting;	/* collectors may work */
	unsigned int s_gc_low;	/* percent of a domain's segments: they begin where fewer are free */
	struct kobject s_kobj;	/* of a log (sysfs.c) */
	struct completion s_kobj_gone;
	struct lanefs_shrinker s_shrinker;
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
	u64 li_parent;
	u64 li_xattr;
	u64 li_blocks;
	u64 li_goal;				/* where to look for data blocks */
	u32 li_map_seq;				/* counts the changes of the extent map */
	spinlock_t li_log_lock;			/* the copy of the inode into its table block */
	bool li_orphan;
	bool li_preallocated;			/* blocks past the end to be given back on close */
	bool li_fallocating;			/* no preallocation: close() could not tell it apart */
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
	struct rw_semaphore li_collect_sem;	/* svp=off: writers, against a collector */
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

/* Whether the file system is log-structured: only an fsync of one page writes in place (writeout.c). */
static inline bool lanefs_is_log(const struct super_block *sb)
{
	return LANEFS_SB(sb)->s_incompat & LANEFS_INCOMPAT_LOG;
}

static inline struct lanefs_domain *lanefs_domain_of(const struct inode *inode)
{
	return LANEFS_SB(inode->i_sb)->s_domain[LANEFS_I(inode)->li_domain];
}

/* An operation's membership in the running transactions of up to this many domains. */
#define LANEFS_HANDLE_PARTS	5

struct lanefs_handle {
	struct lanefs_sb *h_sbi;
	int h_parts;
	unsigned int h_nofs;
	struct {
		struct lanefs_domain *domain;
		struct lanefs_txn *txn;
		struct lanefs_slot *slot;	/* through which it joined, or NULL */
		unsigned int credits;
		unsigned int used;
		u64 reserved;	/* blocks of the domain that may still be allocated */
	} h_part[LANEFS_HANDLE_PARTS];
};

/* For lockdep: the caller may wait for a commit, which waits for handles: it holds no lock of theirs. */
static inline void lanefs_may_wait(struct lanefs_sb *sbi)
{
	rwsem_acquire(&sbi->s_handle_map, 0, 0, _THIS_IP_);
	rwsem_release(&sbi->s_handle_map, _THIS_IP_);
}

/* Which inode of a number is meant: that of a generation, or of these. */
#define LANEFS_GENERATION_ANY	(-1LL)	/* the one that has it, if there is one */
#define LANEFS_GENERATION_NAMED	(-2LL)	/* the same, and its name or bit says that there is */

/* Blocks of a domain that an operation may change, for each tree that it changes, however high. */
#define LANEFS_CREDITS		40
/*
 * Without a tree: up to two inodes with their bits in both bitmaps, an attribute's and a symbolic
 * link's block with the bits of these, and some more.
 */
#define LANEFS_CREDITS_INODE	12

/* All tasks wait for the journal, so I/O limits of one task's cgroup must not delay it. */
static inline void lanefs_bio_no_cgroup(struct bio *bio)
{
	bio_associate_blkg_from_css(bio, blkcg_root_css);
}

/* buf.c */
int lanefs_block_sync(struct lanefs_sb *sbi, u64 block, struct page *page, blk_opf_t opf);

/* The same for metadata. */
static inline int lanefs_bio_sync(struct lanefs_sb *sbi, u64 block, struct page *page,
				  blk_opf_t opf)
{
	return lanefs_block_sync(sbi, block, page, opf | REQ_META);
}

void lanefs_init_header(struct lanefs_sb *sbi, void *data, u32 magic, u64 block, u64 owner);
struct lanefs_buf *lanefs_buf_read(struct lanefs_domain *domain, u64 block, u32 magic, u64 owner);
struct lanefs_buf *lanefs_buf_cached(struct lanefs_domain *domain, u64 block);
struct lanefs_buf *lanefs_buf_new(struct lanefs_handle *h, struct lanefs_domain *domain, u64 block,
				  u32 magic, u64 owner);
struct lanefs_buf *lanefs_buf_alloc(struct lanefs_handle *h, struct lanefs_domain *domain,
				    u32 magic, u64 owner);
void lanefs_buf_join(struct lanefs_handle *h, struct lanefs_buf *buf);
void lanefs_buf_put(struct lanefs_buf *buf);
void lanefs_buf_forget(struct lanefs_domain *domain, u64 block);
void lanefs_buf_unjoin(struct lanefs_handle *h, struct lanefs_domain *domain, u64 block);
void lanefs_cache_init(struct lanefs_domain *domain);
void lanefs_cache_destroy(struct lanefs_domain *domain);
unsigned long lanefs_cache_count(struct shrinker *shrinker, struct shrink_control *sc);
unsigned long lanefs_cache_scan(struct shrinker *shrinker, struct shrink_control *sc);

static inline struct lanefs_header *lanefs_buf_header(const struct lanefs_buf *buf)
{
	return (struct lanefs_header *)buf->b_data;
}

/* The bits of a bitmap's block. */
static inline void *lanefs_buf_bits(const struct lanefs_buf *buf)
{
	return buf->b_data + LANEFS_HEADER_SIZE;
}

/* slots.c */
int lanefs_slots_start(struct lanefs_domain *domain);
void lanefs_slots_stop(struct lanefs_domain *domain);
struct lanefs_slot *lanefs_slot_enter(struct lanefs_domain *domain, unsigned int credits);
unsigned int lanefs_slot_share(const struct lanefs_domain *domain, unsigned int credits);
void lanefs_slot_open(struct lanefs_domain *domain, unsigned int credits);
unsigned int lanefs_slots_close(struct lanefs_domain *domain);
bool lanefs_slots_busy(const struct lanefs_domain *domain);

/* journal.c */
int lanefs_begin(struct lanefs_handle *h, struct lanefs_sb *sbi, unsigned int credits,
		 const u32 *domains, int count);
int lanefs_begin_inode(struct lanefs_handle *h, const struct inode *inode);
void lanefs_end(struct lanefs_handle *h);
struct lanefs_domain *lanefs_joined(const struct lanefs_handle *h, u64 block);
int lanefs_handle_part(const struct lanefs_handle *h, const struct lanefs_domain *domain);
void lanefs_hold_ties(struct lanefs_domain *domain, u64 seq, u64 ticket);
void lanefs_txn_lock(struct lanefs_txn *txn);
void lanefs_txn_drain(struct lanefs_txn *txn);
void lanefs_txn_free(struct lanefs_txn *txn);
void lanefs_journal_init(struct lanefs_domain *domain);
int lanefs_journal_start(struct lanefs_domain *domain);
void lanefs_journal_stop(struct lanefs_domain *domain);
u64 lanefs_log_need(u64 blocks, u64 revokes);

/* coop.c */
struct lanefs_coop {
	void (*work)(struct lanefs_coop *joint, unsigned int step);
	unsigned int steps;
	unsigned int helpers;	/* tasks other than the one whose it is (j_lock) */
	atomic_t next;
};

void lanefs_coop_run(struct lanefs_domain *domain, struct lanefs_coop *joint,
		      struct lanefs_coop **where, wait_queue_head_t *queue);
void lanefs_coop_help(struct lanefs_domain *domain, struct lanefs_coop **where);

/* log.c */
int lanefs_log_transaction(struct lanefs_txn *txn, wait_queue_head_t *queue);

/* commit.c */
void lanefs_commit_request(struct lanefs_domain *domain, u64 seq, bool thread);
int lanefs_commit_wait(struct lanefs_domain *domain, u64 seq);
int lanefs_commit_thread(void *data);

/* stable.c */
int lanefs_durable(struct lanefs_domain *domain, u64 seq);
int lanefs_stabilise(struct lanefs_domain *domain, u64 seq);
int lanefs_stabilise_all(struct lanefs_sb *sbi);
void lanefs_stable_try(struct lanefs_domain *domain);

/* checkpoint.c */
int lanefs_checkpoint(struct lanefs_domain *domain);
int lanefs_write_tail(struct lanefs_domain *domain);
void lanefs_checkpoint_request(struct lanefs_domain *domain);
int lanefs_checkpoint_thread(void *data);

/* recovery.c */
int lanefs_recover(struct lanefs_sb *sbi);

/* alloc.c */
int lanefs_alloc_start(struct lanefs_domain *domain);
void lanefs_alloc_stop(struct lanefs_domain *domain);
int lanefs_alloc_blocks(struct lanefs_handle *h, struct lanefs_domain *domain, u64 goal, u32 want,
			u64 *start, u32 *count);
int lanefs_free_blocks(struct lanefs_handle *h, struct lanefs_domain *domain, u64 start, u64 count,
		       bool metadata);
bool lanefs_take_blocks(struct lanefs_domain *domain, u64 goal, u32 want, u64 *start, u32 *count);
void lanefs_give_blocks(struct lanefs_domain *domain, u64 start, u64 count);
void lanefs_use_blocks(struct lanefs_handle *h, struct lanefs_domain *domain, u64 start, u32 count);
void lanefs_group_mark(struct lanefs_domain *domain, struct lanefs_group *group, u32 bit,
		       u32 count);
void lanefs_group_give(struct lanefs_domain *domain, u32 group, u32 bit, u32 count);
void lanefs_release_freed(struct lanefs_domain *domain, u64 start, u64 count);
struct lanefs_domain *lanefs_block_domain(struct lanefs_sb *sbi, u64 block);

/* segments.c */
#define LANEFS_VALID_PARTS	32

/* The first bit of a group behind the segment that this one is in. */
static inline u32 lanefs_segment_end(u32 bit)
{
	return round_down(bit, LANEFS_SEGMENT_BLOCKS) + LANEFS_SEGMENT_BLOCKS;
}

/* Whether none is left for the streams of data, or (strict=on) not one for each CPU. */
static inline bool lanefs_segments_exhausted(const struct lanefs_domain *domain)
{
	u32 kept = domain->d_segments_kept;

	if (READ_ONCE(domain->d_sbi->s_options.strict) == LANEFS_STRICT_ON)
		kept *= 2;
	return atomic_read(&domain->d_segments_free) <= kept;
}

void lanefs_segments_start(struct lanefs_domain *domain);
int lanefs_segments_load(struct lanefs_domain *domain, u32 number);
void lanefs_segments_count(struct lanefs_domain *domain, struct lanefs_group *group, u32 bit,
			   u32 count, bool set);
void lanefs_segments_used(struct lanefs_group *group, u32 bit);
void lanefs_segments_valid(const struct lanefs_domain *domain, u64 *segments);
u32 lanefs_segments_taken(const struct lanefs_group *group, u32 bit);
bool lanefs_segments_emptied(struct super_block *sb, u64 block);
bool lanefs_segments_low(const struct lanefs_domain *domain, bool collecting);
bool lanefs_stream_take(struct lanefs_domain *domain, struct lanefs_stream *stream, u32 keep,
			u64 *block);
bool lanefs_stream_take_data(struct lanefs_domain *domain, u64 *block);

/* victims.c */
bool lanefs_victim_take(struct lanefs_domain *domain, struct lanefs_victim *victim);
void lanefs_victim_used(struct lanefs_domain *domain, u32 number, u32 bit, u32 count,
			unsigned long *used);
bool lanefs_victim_whole(struct lanefs_domain *domain, const struct lanefs_victim *victim);
void lanefs_victim_give(struct lanefs_domain *domain, const struct lanefs_victim *victim);

/* throttle.c */
int lanefs_throttle_wait(struct lanefs_domain *domain);

/* For a log. -EINTR: the task is to die. */
static inline int lanefs_throttle(struct inode *inode)
{
	struct lanefs_domain *domain = lanefs_domain_of(inode);

	return lanefs_segments_exhausted(domain) ? lanefs_throttle_wait(domain) : 0;
}

/* gc.c */
int lanefs_gc_start(struct lanefs_domain *domain);
void lanefs_gc_stop(struct lanefs_domain *domain);
void lanefs_gc_wake(struct lanefs_domain *domain);
void lanefs_gc_allow(struct lanefs_sb *sbi, bool allowed);

/* owners.c */
int lanefs_owners_set(struct lanefs_handle *h, struct lanefs_domain *domain, u64 start, u32 count,
		      u64 ino, u64 logical);

/* sysfs.c */
int lanefs_sysfs_init(void);
void lanefs_sysfs_exit(void);
int lanefs_sysfs_start(struct lanefs_sb *sbi);
void lanefs_sysfs_stop(struct lanefs_sb *sbi);

/* space.c */
enum lanefs_reserve { LANEFS_FOR_DATA, LANEFS_FOR_METADATA, LANEFS_FOR_COMPLETION };
void lanefs_space_init(struct lanefs_domain *domain);
void lanefs_space_start(struct lanefs_domain *domain);
int lanefs_flush_delayed(struct super_block *sb);
void lanefs_space_keep(struct lanefs_domain *domain, u64 blocks);
s64 lanefs_space(struct lanefs_domain *domain, s64 *for_data);
u64 lanefs_data_room_all(struct lanefs_sb *sbi);
bool lanefs_has_room(struct lanefs_domain *domain, u64 count, enum lanefs_reserve purpose);
bool lanefs_take_free(struct lanefs_domain *domain, u64 count, enum lanefs_reserve purpose);
void lanefs_give_free(struct lanefs_domain *domain, u64 count);
void lanefs_add_pending(struct lanefs_domain *domain, s64 count);
void lanefs_add_delayed(struct lanefs_domain *domain, s64 count);
bool lanefs_delayed_anywhere(const struct lanefs_sb *sbi);
int lanefs_reserve(struct lanefs_handle *h, struct lanefs_domain *domain, u64 count,
		   enum lanefs_reserve purpose);
bool lanefs_retry_alloc(struct lanefs_sb *sbi, bool flush, int *retries);

/* shards.c */
int lanefs_shards_start(struct lanefs_domain *domain);
void lanefs_shards_stop(struct lanefs_domain *domain);
unsigned int lanefs_shards(const struct lanefs_domain *domain);
struct lanefs_shard *lanefs_shard_of(const struct lanefs_domain *domain, u64 index);

/* ialloc.c */
int lanefs_inodes_start(struct lanefs_domain *domain);
void lanefs_inodes_stop(struct lanefs_domain *domain);
u32 lanefs_choose_domain(struct inode *dir);
int lanefs_inode_alloc(struct lanefs_handle *h, struct lanefs_domain *domain, u64 *ino,
		       struct lanefs_buf **buf);
void lanefs_inode_free(struct lanefs_handle *h, struct inode *inode);
void lanefs_orphan(struct lanefs_handle *h, struct inode *inode, bool set);
int lanefs_orphans_load(struct lanefs_domain *domain);
int lanefs_orphans_process(struct lanefs_sb *sbi);

/* tree.c */
struct lanefs_path {
	int p_level;			/* of the root; p_buf[0] is the leaf */
	struct lanefs_buf *p_buf[LANEFS_MAX_LEVEL];
	int p_slot[LANEFS_MAX_LEVEL + 1];
	u64 p_next;			/* lowest key of the next leaf; U64_MAX: there is none */
};

int lanefs_tree_find(struct inode *inode, u64 key, struct lanefs_path *path);
int lanefs_tree_find_room(struct lanefs_handle *h, struct inode *inode, u64 key, unsigned int size,
			  struct lanefs_path *path);
int lanefs_tree_drop_leaf(struct lanefs_handle *h, struct inode *inode, struct lanefs_path *path);
void lanefs_path_put(struct lanefs_path *path);
bool lanefs_tree_cached(struct inode *inode, u64 key);
u64 lanefs_tree_blocks_needed(const struct inode *inode);
unsigned int lanefs_tree_credits(const struct inode *inode);
u64 lanefs_tree_room(const struct inode *inode);

/* extents.c */
struct lanefs_map {
	u64 logical;
	u64 block;	/* 0: hole */
	u64 length;
	bool unwritten;
	bool delayed;	/* a hole with reserved blocks (lanefs_delalloc_clip()) */
	bool fresh;	/* just now */
};

int lanefs_map_find(struct inode *inode, u64 logical, struct lanefs_map *map);
int lanefs_map_last(struct inode *inode, struct lanefs_map *map);
int lanefs_map_insert(struct lanefs_handle *h, struct inode *inode, const struct lanefs_map *map);
int lanefs_map_replace(struct lanefs_handle *h, struct inode *inode, const struct lanefs_map *map);
int lanefs_map_remove(struct lanefs_handle *h, struct inode *inode, u64 logical, u64 length);
int lanefs_map_written(struct lanefs_handle *h, struct inode *inode, u64 logical, u64 length,
		       u64 *done);

/* dir.c */
int lanefs_dir_find(struct inode *dir, const void *name, unsigned int length, u64 *key, u64 *ino);
int lanefs_dir_add(struct lanefs_handle *h, struct inode *dir, const void *name,
		   unsigned int length, u64 ino, umode_t mode);
int lanefs_dir_remove(struct lanefs_handle *h, struct inode *dir, u64 key);
int lanefs_dir_replace(struct lanefs_handle *h, struct inode *dir, u64 key, u64 ino, umode_t mode);
extern const struct file_operations lanefs_dir_fops;

/* span.c */
int lanefs_span_start(struct lanefs_sb *sbi);
void lanefs_span_stop(struct lanefs_sb *sbi);
int lanefs_span_add(struct lanefs_handle *h, const struct inode *dir, const struct qstr *name,
		    const struct inode *inode);
int lanefs_span_remove(struct lanefs_handle *h, const struct inode *dir, const struct qstr *name,
		       const struct inode *inode);

/* attr.c */
struct file_kattr;
void lanefs_set_flags(struct inode *inode, u32 flags);
void lanefs_inherit_flags(struct inode *inode, const struct inode *dir);
void lanefs_fill_attributes(const struct inode *inode, struct kstat *stat);
int lanefs_fileattr_get(struct dentry *dentry, struct file_kattr *fa);
int lanefs_fileattr_set(struct mnt_idmap *idmap, struct dentry *dentry, struct file_kattr *fa);

/* inode.c */
struct inode *lanefs_iget(struct super_block *sb, u64 ino);
struct inode *lanefs_iget_outside(struct super_block *sb, u64 ino, s64 generation);
int lanefs_inode_confirm(struct lanefs_domain *domain, u64 ino, s64 generation);
struct inode *lanefs_inode_new(struct lanefs_handle *h, struct mnt_idmap *idmap, struct inode *dir,
			       u32 domain, umode_t mode, dev_t rdev);
void lanefs_inode_log(struct lanefs_handle *h, struct inode *inode, bool data);
void lanefs_dirty_inode(struct inode *inode, int flags);
void lanefs_evict_inode(struct inode *inode);
int lanefs_setattr_prepare(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr);
int lanefs_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr);
int lanefs_getattr(struct mnt_idmap *idmap, const struct path *path, struct kstat *stat, u32 mask,
		   unsigned int flags);

/* slab.c */
int lanefs_inode_cache_init(void);
void lanefs_inode_cache_exit(void);
struct inode *lanefs_alloc_inode(struct super_block *sb);
void lanefs_free_inode(struct inode *inode);

/* icache.c */
struct inode *lanefs_icache_new(struct super_block *sb);
int lanefs_icache_add(struct inode *inode);
struct inode *lanefs_icache_get(struct super_block *sb, u64 ino, s64 generation);
void lanefs_icache_forget(struct inode *inode);
void lanefs_icache_evict(struct inode *inode);
void lanefs_icache_list(struct lanefs_sb *sbi);
void lanefs_set_links(struct inode *inode, unsigned int links);
bool lanefs_any_unlinked(const struct lanefs_sb *sbi);

/* free.c */
int lanefs_free_range(struct inode *inode, u64 from, u64 to);
int lanefs_free_past_end(struct inode *inode);
void lanefs_free_on_close(struct inode *inode);
int lanefs_truncate_blocks(struct inode *inode, loff_t size);

/* fallocate.c */
long lanefs_fallocate(struct file *file, int mode, loff_t offset, loff_t length);

/* discard.c */
void lanefs_discard_init(struct lanefs_domain *domain);
extern const struct lanefs_journal_ops lanefs_journal_ops;
void lanefs_discard_wait(struct lanefs_sb *sbi);
int lanefs_ioctl_trim(struct file *file, struct fstrim_range __user *argument);

/* ioctl.c */
long lanefs_ioctl(struct file *file, unsigned int command, unsigned long argument);

/* namei.c */
extern const struct inode_operations lanefs_dir_iops;
extern const struct inode_operations lanefs_special_iops;

/* symlink.c */
extern const struct inode_operations lanefs_symlink_iops;
int lanefs_symlink_store(struct lanefs_handle *h, struct inode *inode, const char *target,
			 unsigned int length);
int lanefs_symlink_drop(struct lanefs_handle *h, struct inode *inode);

/* xattr.c */
extern lanefs_xattr_table lanefs_xattr_handlers[];
int lanefs_xattr_load(struct inode *inode, u8 space, const char *name, void *buffer, size_t size);
int lanefs_xattr_store(struct lanefs_handle *h, struct inode *inode, u8 space, const char *name,
		       const void *value, size_t size, int flags);
bool lanefs_xattr_retry(struct inode *inode, int *retries);
ssize_t lanefs_listxattr(struct dentry *dentry, char *buffer, size_t size);
int lanefs_xattr_init_security(struct lanefs_handle *h, struct inode *inode, struct inode *dir,
			       const struct qstr *name);
int lanefs_xattr_drop(struct lanefs_handle *h, struct inode *inode);

/* acl.c */
struct lanefs_acls {	/* what a new inode inherits; NULL: none */
	struct posix_acl *access;
	struct posix_acl *inherit;
};

struct posix_acl *lanefs_get_acl(struct inode *inode, int type, bool rcu);
int lanefs_set_acl(struct mnt_idmap *idmap, lanefs_acl_object *object, struct posix_acl *acl,
		   int type);
int lanefs_acls_prepare(struct inode *dir, umode_t *mode, struct lanefs_acls *acls);
int lanefs_acls_init(struct lanefs_handle *h, struct inode *inode, const struct lanefs_acls *acls);
void lanefs_acls_release(struct lanefs_acls *acls);

/* export.c */
struct export_operations;
extern const struct export_operations lanefs_export_ops;

/* file.c */
extern const struct file_operations lanefs_file_fops;
extern const struct inode_operations lanefs_file_iops;
int lanefs_fsync(struct file *file, loff_t start, loff_t end, int datasync);
int lanefs_zero_tail(struct inode *inode, loff_t size);
int lanefs_write_below(struct inode *inode, loff_t size);
int lanefs_log_size(struct inode *inode, loff_t size);

/* fiemap.c */
int lanefs_fiemap(struct inode *inode, struct fiemap_extent_info *info, u64 start, u64 length);

/* overwrite.c */
ssize_t lanefs_overwrite(struct kiocb *iocb, struct iov_iter *from);

/* readpath.c */
int lanefs_readpath_init(void);
void lanefs_readpath_exit(void);
void lanefs_count_cached(struct inode *inode);
ssize_t lanefs_read_shared(struct kiocb *iocb, struct iov_iter *to);

/* writeout.c */
void lanefs_writeout(struct inode *inode, loff_t start, loff_t end);
void lanefs_writeout_wait(struct inode *inode, loff_t start, loff_t end);
int lanefs_writeout_range(struct inode *inode, loff_t start, loff_t end, bool wait);
void lanefs_writeout_wait_all(struct lanefs_sb *sbi);

/* data.c */
extern const struct address_space_operations lanefs_aops;
extern const struct lanefs_iomap_checks lanefs_iomap_checks;
extern const struct iomap_ops lanefs_iomap_ops;
int lanefs_redirty(struct inode *inode, loff_t pos);
extern const struct iomap_ops lanefs_seek_ops;
u64 lanefs_prealloc_blocks(const struct inode *inode, const struct lanefs_map *map, u64 count);
int lanefs_error_remove(struct address_space *mapping, struct folio *folio);
int lanefs_fill_hole(struct lanefs_handle *h, struct inode *inode, struct lanefs_domain *domain,
		     u64 want, struct lanefs_map *map);
int lanefs_allocate(struct inode *inode, u64 count, bool ahead, struct lanefs_map *map, u32 *seq);
int lanefs_io_ended(struct inode *inode, loff_t offset, size_t size, bool unwritten);
void lanefs_io_work(struct work_struct *work);

/* rewrite.c */
int lanefs_rewrite(struct inode *inode, struct lanefs_map *map);
bool lanefs_rewrite_more(const struct lanefs_handle *h);
int lanefs_rewrite_map(struct lanefs_handle *h, struct inode *inode, struct lanefs_domain *domain,
		       const struct lanefs_map *map);
int lanefs_rewritten(struct inode *inode, loff_t offset, size_t size, u64 block, int err);

/* delalloc.c */
/* Whether a write needs a reservation: to a hole, and in a log to a written block. */
static inline bool lanefs_delalloc_wanted(const struct inode *inode, const struct lanefs_map *map)
{
	return !map->block || (lanefs_is_log(inode->i_sb) && !map->unwritten);
}

struct lanefs_domain *lanefs_delalloc_use(struct inode *inode, u64 logical);
void lanefs_delalloc_cancel(struct inode *inode, u64 logical);
u64 lanefs_delalloc_lend(struct lanefs_handle *h, struct inode *inode);
void lanefs_delalloc_return(struct lanefs_handle *h, struct inode *inode, u64 lent);
void lanefs_delalloc_release_excess(struct inode *inode);
void lanefs_delalloc_clip(struct inode *inode, struct lanefs_map *map, u64 end);
int lanefs_delalloc_reserve(struct inode *inode, u64 count, bool fault, struct lanefs_map *map, u32 *seq);
int lanefs_delalloc_reserve_range(struct inode *inode, u64 at, u64 end);
void lanefs_delalloc_drop(struct inode *inode, u64 from, u64 to);
void lanefs_delalloc_undo(struct inode *inode, u64 from, u64 to);
void lanefs_delalloc_undo_locked(struct inode *inode, u64 from, u64 to);
int lanefs_delalloc_allocate(struct inode *inode, struct lanefs_map *map, u32 *seq);
void lanefs_delalloc_check(struct lanefs_sb *sbi);
void lanefs_delalloc_evict(struct inode *inode);

/* options.c */
extern const struct fs_parameter_spec lanefs_parameters[];
int lanefs_parse_param(struct fs_context *fc, struct fs_parameter *param);
int lanefs_show_options(struct seq_file *seq, struct dentry *root);
bool lanefs_remount_read_only(const struct super_block *sb, const struct fs_context *fc);
int lanefs_check_features(struct super_block *sb, const struct lanefs_options *asked,
			  struct fs_context *fc);
int lanefs_check_options(struct super_block *sb, const struct lanefs_options *asked,
			 const struct lanefs_options *now, struct fs_context *fc);
void lanefs_take_options(struct lanefs_options *now, const struct lanefs_options *asked);

/* super.c */
__printf(2, 3) void lanefs_error(struct lanefs_sb *sbi, const char *format, ...);
void lanefs_abort(struct lanefs_sb *sbi);

/* inode_ops.c */
void lanefs_set_ops(struct inode *inode);

/* state.c */
static inline struct lanefs_super_block *lanefs_super_of(const struct lanefs_sb *sbi)
{
	return page_address(sbi->s_super);
}

int lanefs_write_super(struct lanefs_sb *sbi, u32 state, bool copies);
int lanefs_read_super(struct lanefs_sb *sbi, struct fs_context *fc);
void lanefs_get_label(struct lanefs_sb *sbi, char *label);
int lanefs_set_label(struct lanefs_sb *sbi, const char *label);
int lanefs_new_epoch(struct lanefs_sb *sbi, u32 state);
int lanefs_start(struct lanefs_sb *sbi);
int lanefs_clean(struct lanefs_sb *sbi);
int lanefs_stop(struct lanefs_sb *sbi);

#endif
