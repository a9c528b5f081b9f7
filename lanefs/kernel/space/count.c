// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many blocks and inodes are free is counted in the background, as a mount of a large device
 * would take seconds. What is counted can be had at once. A bitmap that is needed before comes into
 * memory, and is counted then (groups.c, ibitmap.c). Who finds too little waits for more to be
 * counted, until the count is over.
 *
 * Each domain's work counts some of its bitmaps and queues itself again, so that all domains have
 * some soon where there are more of them than CPUs. It takes no handle and reclaims nothing by I/O:
 * it is waited for within handles, and in writeback.
 */
#include <linux/cpumask.h>
#include <linux/sched/mm.h>

#include "space/space.h"

#define LANEFS_COUNT_BLOCKS	512	/* of a bitmap, before others have their turn */

static void lanefs_count_end(struct lanefs_domain *domain, int err)
{
	domain->d_count_err = err;
	smp_store_release(&domain->d_count_over, true);
	wake_up_all(&domain->d_wait_count);
}

static void lanefs_count_work(struct work_struct *work)
{
	struct lanefs_domain *domain = container_of(work, struct lanefs_domain, d_count_work);
	struct lanefs_sb *sbi = domain->d_sbi;
	unsigned int noio = memalloc_noio_save();
	int more = sbi->s_count_step(domain);

	memalloc_noio_restore(noio);
	if (more > 0) {
		queue_work(sbi->s_count, work);
		return;
	}
	if (more < 0)
		lanefs_io_error(sbi, "domain %u: free blocks and inodes cannot be counted (%d)",
				domain->d_id, more);
	lanefs_count_end(domain, more);
}

/**
 * lanefs_count_init() - prepare a domain for the count of what is free
 * @domain: the domain
 *
 * Context: At the mount.
 */
void lanefs_count_init(struct lanefs_domain *domain)
{
	INIT_WORK(&domain->d_count_work, lanefs_count_work);
	init_waitqueue_head(&domain->d_wait_count);
}

/**
 * lanefs_count_start() - begin to count what is free, in the background
 * @sbi: the file system
 * @step: counts some of a domain, with GFP_NOIO and no handle: 1: there is more; 0: that was all;
 *	or an error, which aborts
 *
 * Context: At the mount.
 * Return: 0 or -ENOMEM.
 */
int lanefs_count_start(struct lanefs_sb *sbi, lanefs_count_fn *step)
{
	u32 i;

	sbi->s_count_step = step;
	sbi->s_count = alloc_workqueue("lanefs-count/%s", WQ_UNBOUND | WQ_MEM_RECLAIM,
				       num_online_cpus(), sbi->s_vfs->s_id);
	if (!sbi->s_count)
		return -ENOMEM;
	for (i = 0; i < sbi->s_domains; i++)
		queue_work(sbi->s_count, &sbi->s_domain[i]->d_count_work);
	return 0;
}

/**
 * lanefs_count_stop() - end the count, whether it was begun or not
 * @sbi: the file system
 *
 * A task that still waits for it, as for statistics, gets -ESHUTDOWN.
 *
 * Context: At the end of the mount; waits for the work.
 */
void lanefs_count_stop(struct lanefs_sb *sbi)
{
	struct lanefs_domain *domain;
	u32 i;

	for (i = 0; i < sbi->s_domains && sbi->s_domain[i]; i++) {
		domain = sbi->s_domain[i];
		cancel_work_sync(&domain->d_count_work);
		if (!lanefs_counted(domain))
			lanefs_count_end(domain, -ESHUTDOWN);
	}
	if (sbi->s_count)
		destroy_workqueue(sbi->s_count);
}

/**
 * lanefs_count_next() - look at the next blocks of a bitmap
 * @domain: the domain
 * @bitmap: the bitmap
 * @next: its first block that was not looked at yet; goes on with them
 *
 * Context: In the count's work; sleeps for reads.
 * Return: 1: there are more; 0: that was all; or the error of lanefs_bitmap_scan().
 */
int lanefs_count_next(struct lanefs_domain *domain, const struct lanefs_bitmap *bitmap, u64 *next)
{
	u64 from = *next;

	*next = min(from + LANEFS_COUNT_BLOCKS, bitmap->blocks);
	return lanefs_bitmap_scan(domain, bitmap, from, *next) ?: *next < bitmap->blocks;
}

/**
 * lanefs_count_progress() - tell waiting tasks that more is free than was known
 * @domain: the domain
 *
 * Context: Any, after the counts are changed.
 */
void lanefs_count_progress(struct lanefs_domain *domain)
{
	/* After the counts, before the look for those who wait. */
	atomic64_inc_return(&domain->d_counts);
	if (wq_has_sleeper(&domain->d_wait_count))
		wake_up_all(&domain->d_wait_count);
}

/**
 * lanefs_count_seen() - tell how far a domain's count is
 * @domain: the domain
 *
 * Context: Any, before a look at what is free.
 * Return: the blocks of bitmaps that are counted, or less than 0: the count is over.
 */
s64 lanefs_count_seen(const struct lanefs_domain *domain)
{
	return smp_load_acquire(&domain->d_count_over) ? -1 : atomic64_read_acquire(&domain->d_counts);
}

/**
 * lanefs_count_more() - wait until more is counted, after a look that found too little
 * @domain: the domain
 * @seen: of lanefs_count_seen() before that look; then of now
 *
 * Context: May sleep, also in a handle or under li_tree_sem, as the count takes neither.
 * Return: whether to look again; false without a wait: the count was over.
 */
bool lanefs_count_more(struct lanefs_domain *domain, s64 *seen)
{
	if (*seen < 0)
		return false;
	wait_event(domain->d_wait_count, lanefs_count_seen(domain) != *seen);
	*seen = lanefs_count_seen(domain);
	return true;
}

/**
 * lanefs_count_wait() - wait until all that is free is counted
 * @sbi: the file system
 *
 * Context: Sleeps until then, or the task is to die; also in a handle, as lanefs_count_more().
 * Return: 0, -EINTR: the task is to die, or the error that ended the count.
 */
int lanefs_count_wait(struct lanefs_sb *sbi)
{
	struct lanefs_domain *domain;
	int err = 0;
	u32 i;

	for (i = 0; i < sbi->s_domains && !err; i++) {
		domain = sbi->s_domain[i];
		if (wait_event_killable(domain->d_wait_count, lanefs_counted(domain)))
			return -EINTR;
		err = domain->d_count_err;
	}
	return err;
}
