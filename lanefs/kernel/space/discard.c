// SPDX-License-Identifier: GPL-2.0-only
/*
 * Telling the device which blocks are not in use. With the mount option `discard` the blocks that a
 * transaction freed are discarded when it is stable, by a worker of the domain, and can be used
 * again after that. FITRIM discards what is free.
 */
#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "space/space.h"

#define LANEFS_TRIM_BLOCKS	2048	/* taken from the allocator at a time */

static void lanefs_discard_work(struct work_struct *work)
{
	struct lanefs_domain *domain = container_of(work, struct lanefs_domain, d_discard_work);
	struct block_device *bdev = domain->d_sbi->s_vfs->s_bdev;
	struct lanefs_freed *freed, *next;
	struct bio *bio = NULL;
	struct blk_plug plug;
	LIST_HEAD(list);

	spin_lock(&domain->d_discard_lock);
	list_splice_init(&domain->d_discards, &list);
	spin_unlock(&domain->d_discard_lock);
	blk_start_plug(&plug);
	/* Blocks become free even if the device fails to discard them. */
	list_for_each_entry(freed, &list, node)
		if (lanefs_issue_discard(bdev, freed->start << LANEFS_SECTOR_SHIFT,
					 freed->count << LANEFS_SECTOR_SHIFT, &bio))
			break;
	if (bio) {
		submit_bio_wait(bio);
		bio_put(bio);
	}
	blk_finish_plug(&plug);
	list_for_each_entry_safe(freed, next, &list, node) {
		lanefs_release_freed(domain, freed->start, freed->count);
		kfree(freed);
	}
}

/**
 * lanefs_discard_init() - prepare a domain for discards
 * @domain: the domain
 *
 * Context: At the mount.
 */
void lanefs_discard_init(struct lanefs_domain *domain)
{
	spin_lock_init(&domain->d_discard_lock);
	INIT_LIST_HEAD(&domain->d_discards);
	INIT_WORK(&domain->d_discard_work, lanefs_discard_work);
	mutex_init(&domain->d_trim_mutex);
}

/*
 * The transaction that freed the blocks is stable: they can be used again, discarded before if
 * wanted.
 */
static void lanefs_freed_stable(struct lanefs_journal *journal, struct lanefs_freed *freed)
{
	struct lanefs_domain *domain = journal->j_sbi->s_domain[journal->j_id];

	if (!READ_ONCE(domain->d_sbi->s_options.discard)) {
		lanefs_release_freed(domain, freed->start, freed->count);
		kfree(freed);
		return;
	}
	spin_lock(&domain->d_discard_lock);
	list_add_tail(&freed->node, &domain->d_discards);
	spin_unlock(&domain->d_discard_lock);
	queue_work(domain->d_sbi->s_io_done, &domain->d_discard_work);
}

/* A handle of the domain ends. */
static void lanefs_unreserve(struct lanefs_journal *journal, u64 blocks)
{
	lanefs_give_free(journal->j_sbi->s_domain[journal->j_id], blocks);
}

const struct lanefs_journal_ops lanefs_space_ops = {
	.unreserve = lanefs_unreserve,
	.freed_stable = lanefs_freed_stable,
};

/**
 * lanefs_discard_wait() - wait until all that was freed, and is stable, can be used again
 * @sbi: the file system
 *
 * Context: Sleeps for discards of the device, which take no handle and no page.
 */
void lanefs_discard_wait(struct lanefs_sb *sbi)
{
	u32 i;

	for (i = 0; i < sbi->s_domains; i++)
		flush_work(&sbi->s_domain[i]->d_discard_work);
}

/*
 * The next free blocks of the group from bit *at to before `end`, of a run of `least` or more, marked
 * as in use; their number, 0: there are none. They count as free: who has reserved them waits for
 * d_trim_mutex (alloc.c). *run is where the run ends that was found last: what is left of it when its
 * first blocks are free again may be shorter.
 */
static u32 lanefs_trim_take(struct lanefs_domain *domain, u32 number, u32 *at, u32 *run, u32 end,
			    u64 least)
{
	struct lanefs_group *group = &domain->d_groups[number];
	u32 stop, bit, count = 0;

	if (READ_ONCE(group->g_free) < least && *at >= *run)
		return 0;
	if (lanefs_group_lock(domain, number))
		return 0;
	for (; !count && *at < end; *at = stop) {
		bit = find_next_zero_bit_le(group->g_busy, end, *at);
		if (bit >= end) {
			*at = end;
			break;
		}
		if (bit >= *run) {
			*run = find_next_bit_le(group->g_busy, end, bit);
			stop = *run;
			if (*run - bit < least)
				continue;
		}
		stop = find_next_bit_le(group->g_busy, min(end, bit + LANEFS_TRIM_BLOCKS), bit);
		count = stop - bit;
	}
	lanefs_group_mark(domain, group, *at - count, count);
	spin_unlock(&group->g_lock);
	return count;
}

/* Discards some of the group's free blocks, as lanefs_trim_take() takes them; their number, or an error. */
static int lanefs_trim_some(struct lanefs_domain *domain, u32 number, u32 *at, u32 *run, u32 end,
			    u64 least)
{
	u64 first = domain->d_layout.base + (u64)number * LANEFS_BITMAP_BITS;
	u32 count;
	int err = 0;

	mutex_lock(&domain->d_trim_mutex);
	count = lanefs_trim_take(domain, number, at, run, end, least);
	if (count) {
		err = blkdev_issue_discard(domain->d_sbi->s_vfs->s_bdev,
					   (first + *at - count) << LANEFS_SECTOR_SHIFT,
					   (sector_t)count << LANEFS_SECTOR_SHIFT, GFP_NOFS);
		lanefs_group_release(domain, number, *at - count, count);
	}
	mutex_unlock(&domain->d_trim_mutex);
	return err ?: count;
}

/* Discards the free blocks from `start` to before `end`; *trimmed counts them. */
static int lanefs_trim_domain(struct lanefs_domain *domain, u64 start, u64 end, u64 least,
			      u64 *trimmed)
{
	u64 base = domain->d_layout.base, first;
	struct lanefs_group *group;
	u32 number, at, run, to;
	int count = 0;

	start = max(start, base) - base;
	end = min(end, domain->d_layout.end) - base;
	for (number = 0; number < domain->d_ngroups && count >= 0; number++) {
		group = &domain->d_groups[number];
		first = (u64)number * LANEFS_BITMAP_BITS;
		if (first >= end || first + group->g_bits <= start)
			continue;
		at = start > first ? start - first : 0;
		run = 0;
		to = min_t(u64, group->g_bits, end - first);
		while ((count = lanefs_trim_some(domain, number, &at, &run, to, least)) > 0) {
			*trimmed += count;
			if (fatal_signal_pending(current))
				return -ERESTARTSYS;
			cond_resched();
		}
	}
	return count;
}

static int lanefs_trim(struct lanefs_sb *sbi, struct fstrim_range *range)
{
	u64 least = max_t(u64, range->minlen, bdev_discard_granularity(sbi->s_vfs->s_bdev));
	u64 blocks = le64_to_cpu(lanefs_super_of(sbi)->sb_blocks), start, end, trimmed = 0;
	struct lanefs_domain *domain;
	int err = 0;
	u32 i;

	if (check_add_overflow(range->start, range->len, &end))
		end = U64_MAX;
	end >>= LANEFS_BLOCK_SHIFT;
	/* Neither can overflow when it is rounded up. */
	if (range->start >> LANEFS_BLOCK_SHIFT >= blocks || range->len < LANEFS_BLOCK_SIZE ||
	    range->minlen >> LANEFS_BLOCK_SHIFT >= blocks)
		return -EINVAL;
	/* A group that was not counted seems to have no free blocks. */
	err = lanefs_count_wait(sbi);
	start = DIV_ROUND_UP_ULL(range->start, LANEFS_BLOCK_SIZE);
	least = max_t(u64, DIV_ROUND_UP_ULL(least, LANEFS_BLOCK_SIZE), 1);
	for (i = 0; i < sbi->s_domains && !err; i++) {
		domain = sbi->s_domain[i];
		if (start < domain->d_layout.end && end > domain->d_layout.base)
			err = lanefs_trim_domain(domain, start, end, least, &trimmed);
	}
	range->len = trimmed << LANEFS_BLOCK_SHIFT;
	return err;
}

/**
 * lanefs_ioctl_trim() - discard free blocks (FITRIM)
 * @file: any of the file system
 * @argument: range and shortest run in bytes; gets the bytes that were discarded
 *
 * Context: Outside of handles; waits for the count of free blocks, takes d_trim_mutex for up to
 * LANEFS_TRIM_BLOCKS at a time, and sleeps for the discards.
 * Return: 0, -EPERM, -EOPNOTSUPP: the device discards nothing, -EFAULT, -EINVAL: the range is
 * outside of the file system, or less than a block, -EROFS, -EINTR or -ERESTARTSYS: the task is to
 * die, or the error of the count or of a discard.
 */
int lanefs_ioctl_trim(struct file *file, struct fstrim_range __user *argument)
{
	struct super_block *sb = file_inode(file)->i_sb;
	struct fstrim_range range;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (!bdev_max_discard_sectors(sb->s_bdev))
		return -EOPNOTSUPP;
	if (copy_from_user(&range, argument, sizeof(range)))
		return -EFAULT;
	err = mnt_want_write_file(file);
	if (err)
		return err;
	err = lanefs_trim(LANEFS_SB(sb), &range);
	mnt_drop_write_file(file);
	if (!err && copy_to_user(argument, &range, sizeof(range)))
		err = -EFAULT;
	return err;
}
