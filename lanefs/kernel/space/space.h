/* SPDX-License-Identifier: GPL-2.0-only */
/* The blocks of a domain: how many are free, which ones, and the segments of a log. */
#ifndef LANEFS_SPACE_H
#define LANEFS_SPACE_H

#include "space/domain.h"
#include "journal/journal.h"

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
	u32 next;			/* group with which the next look begins */
};

enum {
	LANEFS_SEGMENT_OTHER,		/* no stream's: metadata's, not whole, or not counted yet */
	LANEFS_SEGMENT_USED,
	LANEFS_SEGMENT_FREE,		/* no bit is set */
	LANEFS_SEGMENT_OPEN,		/* a stream's */
	LANEFS_SEGMENT_VICTIM,		/* a collector empties it, */
	LANEFS_SEGMENT_TARGET,		/* and fills it: of both holes are filled if there are no others */
};

struct lanefs_group {
	spinlock_t g_lock;		/* what follows, and bits in the on-disk bitmap */
	u32 g_free;
	u32 g_differing;		/* bits in which both bitmaps differ, or are about to */
	u16 g_bits;
	bool g_wanted;			/* since the shrinker last looked */
	bool g_counted;			/* g_free, and the segments, are as the bitmap says (count.c) */
	/* In use, being written, or freed by what is not stable; NULL: not in memory, as on disk. */
	unsigned long *g_busy;
	struct lanefs_buf *g_buf;	/* of the bitmap: kept as long as g_busy is */
	struct lanefs_segment *g_segments;	/* of a log: LANEFS_SEGMENTS, or NULL */
	u64 g_segments_free;		/* a bit for each that is free */
	struct list_head g_node;	/* in d_loaded, if there is g_busy (d_bitmaps_mutex) */
} ____cacheline_aligned_in_smp;

/* space.c */
enum lanefs_reserve { LANEFS_FOR_DATA, LANEFS_FOR_METADATA, LANEFS_FOR_COMPLETION };
void lanefs_space_init(struct lanefs_domain *domain);
void lanefs_space_start(struct lanefs_domain *domain);
void lanefs_space_keep(struct lanefs_domain *domain, u64 blocks);
s64 lanefs_space_count(struct lanefs_domain *domain, s64 *for_data);
bool lanefs_data_fits(struct lanefs_sb *sbi, u64 blocks);
bool lanefs_has_room(struct lanefs_domain *domain, u64 count, enum lanefs_reserve purpose);
bool lanefs_take_free(struct lanefs_domain *domain, u64 count, enum lanefs_reserve purpose);
void lanefs_give_free(struct lanefs_domain *domain, u64 count);
void lanefs_add_pending(struct lanefs_domain *domain, s64 count);
void lanefs_add_delayed(struct lanefs_domain *domain, s64 count);
bool lanefs_delayed_anywhere(const struct lanefs_sb *sbi);
int lanefs_reserve(struct lanefs_handle *h, struct lanefs_domain *domain, u64 count,
		   enum lanefs_reserve purpose);
s64 lanefs_space_pending(const struct lanefs_domain *domain);
void lanefs_space_queue(struct lanefs_domain *domain);

/* scan.c */
struct lanefs_bitmap {
	u64 first, blocks;
	u32 magic;
	/* Whether nothing is to be learnt from the block any more; NULL: it always is. */
	bool (*known)(struct lanefs_domain *domain, u32 number);
	int (*see)(struct lanefs_domain *domain, u32 number, const void *bits);
};

u32 lanefs_zero_bits(const void *bits, u32 count);
int lanefs_bitmap_scan(struct lanefs_domain *domain, const struct lanefs_bitmap *bitmap, u64 from,
		       u64 end);
int lanefs_each_domain(struct lanefs_sb *sbi, int (*step)(struct lanefs_domain *domain));

/* count.c */
typedef int lanefs_count_fn(struct lanefs_domain *domain);
void lanefs_count_init(struct lanefs_domain *domain);
int lanefs_count_start(struct lanefs_sb *sbi, lanefs_count_fn *step);
void lanefs_count_stop(struct lanefs_sb *sbi);
int lanefs_count_next(struct lanefs_domain *domain, const struct lanefs_bitmap *bitmap, u64 *next);
void lanefs_count_progress(struct lanefs_domain *domain);
s64 lanefs_count_seen(const struct lanefs_domain *domain);
bool lanefs_count_more(struct lanefs_domain *domain, s64 *seen);
int lanefs_count_wait(struct lanefs_sb *sbi);

/* Whether it is over: all that is free is counted. */
static inline bool lanefs_counted(const struct lanefs_domain *domain)
{
	return lanefs_count_seen(domain) < 0;
}

/* groups.c */
int lanefs_groups_start(struct lanefs_domain *domain);
int lanefs_groups_count(struct lanefs_domain *domain);
void lanefs_groups_stop(struct lanefs_domain *domain);
bool lanefs_group_known(struct lanefs_domain *domain, u32 number);
int lanefs_group_load(struct lanefs_domain *domain, u32 number);
int lanefs_group_lock(struct lanefs_domain *domain, u32 number);
void lanefs_group_prepare(struct lanefs_domain *domain, u32 number);
void lanefs_free_prepare(struct lanefs_domain *domain, u64 start, u64 count);
bool lanefs_free_prepared(const struct lanefs_domain *domain, u64 start, u64 count);
unsigned long lanefs_groups_cached(struct shrinker *shrinker, struct shrink_control *sc);
unsigned long lanefs_groups_scan(struct shrinker *shrinker, struct shrink_control *sc);

/* Of a block of the domain. */
static inline u32 lanefs_group_of(const struct lanefs_domain *domain, u64 block)
{
	return div_u64(block - domain->d_layout.base, LANEFS_BITMAP_BITS);
}

/* alloc.c */
void lanefs_alloc_prepare(struct lanefs_domain *domain, u64 goal);
int lanefs_alloc_blocks(struct lanefs_handle *h, struct lanefs_domain *domain, u64 goal, u32 want,
			u64 *start, u32 *count);
int lanefs_free_blocks(struct lanefs_handle *h, struct lanefs_domain *domain, u64 start, u64 count,
		       bool metadata);
int lanefs_take_blocks(struct lanefs_domain *domain, u64 goal, u32 want, u64 *start, u32 *count);
int lanefs_reserved_missing(struct lanefs_domain *domain, int err);
void lanefs_give_blocks(struct lanefs_domain *domain, u64 start, u64 count);
void lanefs_use_blocks(struct lanefs_handle *h, struct lanefs_domain *domain, u64 start, u32 count);
void lanefs_group_mark(struct lanefs_domain *domain, struct lanefs_group *group, u32 bit,
		       u32 count);
void lanefs_group_release(struct lanefs_domain *domain, u32 number, u32 bit, u32 count);
void lanefs_release_freed(struct lanefs_domain *domain, u64 start, u64 count);
struct lanefs_domain *lanefs_block_domain(struct lanefs_sb *sbi, u64 block);
struct lanefs_domain *lanefs_handle_domain(const struct lanefs_handle *h, u64 block);
struct lanefs_buf *lanefs_buf_alloc(struct lanefs_handle *h, struct lanefs_domain *domain,
				    u32 magic, u64 owner);

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

int lanefs_segments_start(struct lanefs_domain *domain);
void lanefs_segments_stop(struct lanefs_domain *domain);
void lanefs_segments_see(struct lanefs_domain *domain, u32 number, const void *bits);
void lanefs_segments_count(struct lanefs_domain *domain, struct lanefs_group *group, u32 bit,
			   u32 count, bool set);
void lanefs_segments_used(struct lanefs_group *group, u32 bit);
void lanefs_segments_valid(const struct lanefs_domain *domain, u64 *segments);
u32 lanefs_segments_taken(const struct lanefs_group *group, u32 bit);
bool lanefs_segments_low(const struct lanefs_domain *domain, bool collecting);

/* streams.c */
bool lanefs_stream_take(struct lanefs_domain *domain, struct lanefs_stream *stream, u32 keep,
			u64 *block);
int lanefs_stream_take_data(struct lanefs_domain *domain, u64 *block);

/* victims.c */
bool lanefs_segments_emptied(struct super_block *sb, u64 block);
bool lanefs_victim_take(struct lanefs_domain *domain, struct lanefs_victim *victim);
int lanefs_victim_used(struct lanefs_domain *domain, u32 number, u32 bit, u32 count,
		       unsigned long *used);
bool lanefs_victim_whole(struct lanefs_domain *domain, const struct lanefs_victim *victim);
void lanefs_victim_give(struct lanefs_domain *domain, const struct lanefs_victim *victim);

/* throttle.c */
void lanefs_gc_wake(struct lanefs_domain *domain);
int lanefs_throttle_wait(struct lanefs_domain *domain);

/* For a log. -EINTR: the task is to die. */
static inline int lanefs_throttle(struct inode *inode)
{
	struct lanefs_domain *domain = lanefs_domain_of(inode);

	return lanefs_segments_exhausted(domain) ? lanefs_throttle_wait(domain) : 0;
}

/* owners.c */
int lanefs_owners_set(struct lanefs_handle *h, struct lanefs_domain *domain, u64 start, u32 count,
		      u64 ino, u64 logical);

/* discard.c */
void lanefs_discard_init(struct lanefs_domain *domain);
extern const struct lanefs_journal_ops lanefs_space_ops;
void lanefs_discard_wait(struct lanefs_sb *sbi);
int lanefs_ioctl_trim(struct file *file, struct fstrim_range __user *argument);

/* retry.c */
int lanefs_flush_delayed(struct super_block *sb, bool wait);
bool lanefs_retry_alloc(struct lanefs_sb *sbi, bool flush, int *retries);

#endif
