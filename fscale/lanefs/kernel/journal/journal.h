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
	struct lanefs_flush *t_flush;	/* shared by its commit, or NULL (j_lock, until it is locked) */
};

/* A task that waits to join a domain, for which room is left. */
struct lanefs_waiter {
	struct list_head w_node;
	u64 w_ticket;
	unsigned int w_credits;
};

/* Calls from the journal to what is built on it. */
struct lanefs_journal_ops {
	/* A handle ends with blocks reserved that it did not allocate. */
	void (*unreserve)(struct lanefs_domain *domain, u64 blocks);
	/* The transaction that freed these blocks is stable; takes the record over. */
	void (*freed_stable)(struct lanefs_domain *domain, struct lanefs_freed *freed);
};

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
void lanefs_end(struct lanefs_handle *h);
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
	void (*work)(struct lanefs_coop *coop, unsigned int step);
	unsigned int steps;
	unsigned int helpers;	/* tasks other than the one whose it is (j_lock) */
	atomic_t next;
};

void lanefs_coop_run(struct lanefs_domain *domain, struct lanefs_coop *coop,
		      struct lanefs_coop **where, wait_queue_head_t *queue);
void lanefs_coop_help(struct lanefs_domain *domain, struct lanefs_coop **where);

/* flush.c */
void lanefs_flush_share(struct lanefs_sb *sbi, const u64 *seq);
int lanefs_flush_log(struct lanefs_txn *txn);
void lanefs_flush_put(struct lanefs_flush *flush);

/* log.c */
int lanefs_log_transaction(struct lanefs_txn *txn, wait_queue_head_t *queue);

/* commit.c */
void lanefs_commit_request(struct lanefs_domain *domain, u64 seq, bool thread);
int lanefs_commit_wait(struct lanefs_domain *domain, u64 seq);
int lanefs_commit_thread(void *data);

/* stable.c */
int lanefs_make_durable(struct lanefs_domain *domain, u64 seq);
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
