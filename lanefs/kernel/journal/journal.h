/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The journals of the domains, and what is read and written through them: the cache of metadata
 * blocks, recovery, and the superblock with their epoch. What is built on them is called by
 * struct lanefs_journal_ops alone.
 */
#ifndef LANEFS_JOURNAL_H
#define LANEFS_JOURNAL_H

#include "core/joinlist.h"
#include "lanefs.h"

/* A metadata block in its domain's cache. b_ref counts the cache itself as one. */
struct lanefs_buf {
	u64 b_block;
	struct lanefs_journal *b_journal;
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
	struct list_head b_home_node;	/* in j_home, by b_home_seq */
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
struct lanefs_journal_vec {
	struct lanefs_buf *buf;
	struct page *page;
};

struct lanefs_freed {
	struct list_head node;
	u64 start;
	u64 count;
	bool metadata;		/* forget the cached block, revoke its copies in the journal */
};

struct lanefs_txn {
	struct lanefs_journal *t_journal;
	u64 t_seq;
	bool t_locked;			/* takes no more handles (j_lock) */
	unsigned int t_handles;		/* open ones, but for those of slots (j_lock) */
	unsigned int t_untied;		/* of several domains, which they have not tied yet (j_lock) */
	unsigned int t_reserved;	/* blocks: used, and credits of handles and slots (j_lock) */
	unsigned long t_started;	/* jiffies */
	struct lanefs_joinlist t_bufs ____cacheline_aligned_in_smp;
	atomic_t t_joined;		/* blocks in it that were not removed again */
	spinlock_t t_lock ____cacheline_aligned_in_smp;	/* t_freed, t_revokes */
	struct list_head t_freed;
	unsigned int t_revokes;
	bool t_tied;
	u64 *t_needs;			/* by domain; if t_tied (j_lock) */
	struct lanefs_journal_vec *t_vec;	/* when it is frozen, t_nbufs of them */
	unsigned int t_nbufs;
	u64 t_jstart;			/* block of the journal */
	u64 t_jblocks;
	struct list_head t_node;	/* in j_txns */
	struct lanefs_flush *t_flush;	/* shared by its commit, or NULL (j_lock, until it is locked) */
};

/* A task that waits to join a domain, for which room is left. */
struct lanefs_waiter {
	struct list_head w_node;
	u64 w_ticket;
	unsigned int w_credits;
};

/*
 * A domain's journal, and the blocks that are read and written through it. Fields that one task
 * writes together share cache lines, apart from fields that others write or read.
 */
struct lanefs_journal {
	struct lanefs_sb *j_sbi;
	u32 j_id;			/* of the domain */
	const struct lanefs_layout *j_layout;
	u64 __percpu *j_slots;		/* a word for each CPU (slots.c) */
	unsigned int j_max_txn;		/* blocks */
	struct task_struct *j_commit_task;
	struct task_struct *j_checkpoint_task;

	/* cache of metadata blocks */
	struct xarray j_cache ____cacheline_aligned_in_smp;
	spinlock_t j_cache_lock;
	struct list_head j_cache_list;
	unsigned long j_cache_count;

	/* each handle */
	spinlock_t j_lock ____cacheline_aligned_in_smp;
	struct lanefs_txn *j_running;
	u64 j_running_seq;	/* its sequence, or 0 */
	u64 j_free;		/* blocks of the journal */
	wait_queue_head_t j_wait_join;		/* handles wait for a new transaction or space */
	struct list_head j_waiters;		/* oldest first */
	u64 j_held_seq;		/* up to this transaction only handles of one domain join, */
	u64 j_held_ticket;	/* and those that have waited for longer */

	/* each commit */
	struct lanefs_txn *j_committing ____cacheline_aligned_in_smp;
	u64 j_next_seq;
	u64 j_committed;	/* highest sequence on disk */
	u64 j_stable;		/* highest stable sequence */
	u64 j_tied;		/* highest sequence that needs something of another domain */
	u64 j_wanted;		/* commit up to this sequence */
	u64 j_head;		/* where the next transaction goes: block of the journal */
	struct list_head j_txns;	/* transactions in the journal, from j_tail_seq, by sequence */
	struct mutex j_commit_mutex;	/* held by the committer */
	struct mutex j_stable_mutex;
	wait_queue_head_t j_wait_drained;	/* the commit waits for handles */
	wait_queue_head_t j_wait_committed[2];	/* by the transaction's sequence, modulo 2 */
	wait_queue_head_t j_wait_helped;	/* a commit or checkpoint waits for helpers */
	struct lanefs_coop *j_write_coop;	/* what is written of the journal now (coop.c) */
	wait_queue_head_t j_wait_commit_work;

	/* the checkpoint */
	u64 j_tail_seq ____cacheline_aligned_in_smp;
	u64 j_tail;
	wait_queue_head_t j_wait_checkpoint_work;
	bool j_checkpoint_wanted;
	spinlock_t j_home_lock;
	struct list_head j_home;	/* stable blocks that are not in place yet */
	struct mutex j_checkpoint_mutex;
	struct lanefs_coop *j_home_coop;	/* what is written in place now (coop.c) */
} ____cacheline_aligned_in_smp;

/* Calls from the journal to what is built on it. */
struct lanefs_journal_ops {
	/* A handle ends with blocks reserved that it did not allocate. */
	void (*unreserve)(struct lanefs_journal *journal, u64 blocks);
	/* The transaction that freed these blocks is stable; takes the record over. */
	void (*freed_stable)(struct lanefs_journal *journal, struct lanefs_freed *freed);
};

/* An operation's membership in the running transactions of up to this many domains. */
#define LANEFS_HANDLE_PARTS	5

struct lanefs_handle {
	struct lanefs_sb *h_sbi;
	int h_parts;
	unsigned int h_nofs;
	struct {
		struct lanefs_journal *journal;
		struct lanefs_txn *txn;
		u64 *slot;	/* through which it joined, or NULL */
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

/* Has the domain's thread write all that is committed in place (checkpoint.c). */
static inline void lanefs_checkpoint_request(struct lanefs_journal *journal)
{
	WRITE_ONCE(journal->j_checkpoint_wanted, true);
	wake_up(&journal->j_wait_checkpoint_work);
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
struct lanefs_buf *lanefs_buf_read(struct lanefs_journal *journal, u64 block, u32 magic, u64 owner);
struct lanefs_buf *lanefs_buf_cached(struct lanefs_journal *journal, u64 block);
struct lanefs_buf *lanefs_buf_new(struct lanefs_handle *h, struct lanefs_journal *journal, u64 block,
				  u32 magic, u64 owner);
void lanefs_buf_join(struct lanefs_handle *h, struct lanefs_buf *buf);
void lanefs_buf_put(struct lanefs_buf *buf);
void lanefs_buf_forget(struct lanefs_journal *journal, u64 block);
void lanefs_buf_unjoin(struct lanefs_handle *h, struct lanefs_journal *journal, u64 block);
void lanefs_cache_init(struct lanefs_journal *journal);
void lanefs_cache_destroy(struct lanefs_journal *journal);
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
u64 *lanefs_slot_enter(struct lanefs_journal *journal, unsigned int credits);
unsigned int lanefs_slot_share(const struct lanefs_journal *journal, unsigned int credits);
void lanefs_slot_open(struct lanefs_journal *journal, unsigned int credits);
unsigned int lanefs_slots_close(struct lanefs_journal *journal);
bool lanefs_slots_busy(const struct lanefs_journal *journal);

/* handle.c */
u64 lanefs_journal_need(u64 blocks, u64 revokes);
int lanefs_handle_start(struct lanefs_handle *h, struct lanefs_sb *sbi, unsigned int credits,
			const u32 *domains, int count);
void lanefs_handle_stop(struct lanefs_handle *h);
int lanefs_handle_part(const struct lanefs_handle *h, const struct lanefs_journal *journal);
void lanefs_hold_ties(struct lanefs_journal *journal, u64 seq, u64 ticket);
void lanefs_txn_lock(struct lanefs_txn *txn);
void lanefs_txn_drain(struct lanefs_txn *txn);
void lanefs_txn_free(struct lanefs_txn *txn);

/* journal.c */
int lanefs_journal_cache_init(void);
void lanefs_journal_cache_exit(void);
struct lanefs_journal *lanefs_journal_new(struct lanefs_sb *sbi, u32 id,
					  const struct lanefs_layout *layout, u64 __percpu *slots,
					  int node);
void lanefs_journal_free(struct lanefs_journal *journal);
int lanefs_journal_start(struct lanefs_journal *journal);
void lanefs_journal_stop(struct lanefs_journal *journal);

/* coop.c */
struct lanefs_coop {
	void (*work)(struct lanefs_coop *coop, unsigned int step);
	unsigned int steps;
	unsigned int helpers;	/* tasks other than the one whose it is (j_lock) */
	atomic_t next;
};

void lanefs_coop_run(struct lanefs_journal *journal, struct lanefs_coop *coop,
		      struct lanefs_coop **where, wait_queue_head_t *queue);
void lanefs_coop_help(struct lanefs_journal *journal, struct lanefs_coop **where);

/* flush.c */
void lanefs_flush_share(struct lanefs_sb *sbi, const u64 *seq);
int lanefs_flush_journal(struct lanefs_txn *txn);
void lanefs_flush_put(struct lanefs_flush *flush);

/* write.c */
int lanefs_journal_transaction(struct lanefs_txn *txn, wait_queue_head_t *queue);

/* commit.c */
void lanefs_commit_request(struct lanefs_journal *journal, u64 seq, bool thread);
int lanefs_commit_wait(struct lanefs_journal *journal, u64 seq);
int lanefs_commit_thread(void *data);

/* throttled.c */
#ifdef LANEFS_THROTTLED_IN_KERNEL
bool lanefs_may_be_throttled(struct lanefs_sb *sbi);
u64 lanefs_run_delay(void);
void lanefs_note_run_delay(struct lanefs_sb *sbi, u64 before);
#else
static inline bool lanefs_may_be_throttled(struct lanefs_sb *sbi)
{
	return false;
}

static inline u64 lanefs_run_delay(void)
{
	return 0;
}

static inline void lanefs_note_run_delay(struct lanefs_sb *sbi, u64 before)
{
}
#endif

/* durable.c */
int lanefs_make_durable(struct lanefs_journal *journal, u64 seq);
int lanefs_stabilise(struct lanefs_journal *journal, u64 seq);
int lanefs_stabilise_all(struct lanefs_sb *sbi);

/* stable.c */
bool lanefs_needs_extend(struct lanefs_sb *sbi, u64 *need, u64 *seen, bool whole, u64 ticket);
void lanefs_stable_advance(struct lanefs_journal *journal, u64 seq);
int lanefs_stable_advance_all(struct lanefs_sb *sbi, const u64 *need);
void lanefs_stable_try(struct lanefs_journal *journal);

/* checkpoint.c */
int lanefs_checkpoint(struct lanefs_journal *journal);
int lanefs_write_tail(struct lanefs_journal *journal);
int lanefs_checkpoint_thread(void *data);

/* recovery.c */
int lanefs_recover(struct lanefs_sb *sbi);

/* error.c */
__printf(2, 3) void lanefs_error(struct lanefs_sb *sbi, const char *format, ...);
__printf(2, 3) void lanefs_io_error(struct lanefs_sb *sbi, const char *format, ...);
void lanefs_abort(struct lanefs_sb *sbi);
void lanefs_shutdown(struct lanefs_sb *sbi);

/* superblock.c */
static inline struct lanefs_super_block *lanefs_super_of(const struct lanefs_sb *sbi)
{
	return page_address(sbi->s_super);
}

int lanefs_write_super(struct lanefs_sb *sbi, u32 state, bool copies);
void lanefs_get_label(struct lanefs_sb *sbi, char *label);
int lanefs_set_label(struct lanefs_sb *sbi, const char *label);

#endif
