// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writers of a log wait before they take locks or pages, where no segment is free for data: for a
 * while, so that collectors keep up with them and writeback finds segments more often than holes; or
 * (strict=on, for figures like ScaleLFS's) until one is free or there is nothing to collect.
 */
#include <linux/ktime.h>
#include <linux/wait.h>

#include "space/collector.h"
#include "journal/trace.h"

#define LANEFS_THROTTLE		(HZ / 100 ?: 1)	/* the longest wait, if not strict */
#define LANEFS_THROTTLE_AGAIN	(HZ / 10 ?: 1)	/* until collectors are asked again */

/* Wakes the collectors, because few segments are free. May be called with locks held. */
void lanefs_gc_wake(struct lanefs_domain *domain)
{
	struct lanefs_sb *sbi = domain->d_sbi;
	struct lanefs_collector *collector;
	u32 i;

	if (!lanefs_gc_allowed(sbi))
		return;
	if (lanefs_ablated(sbi, LANEFS_ABLATE_GC)) {
		mod_delayed_work(sbi->s_collect, &sbi->s_domain[0]->d_collectors[0]->co_work, 0);
		return;
	}
	for (i = 0; i < domain->d_ncollectors; i++) {
		collector = domain->d_collectors[i];
		/* One that works goes on as long as there are few. */
		if (!READ_ONCE(collector->co_working))
			mod_delayed_work_on(collector->co_cpu, sbi->s_collect, &collector->co_work, 0);
	}
}

static bool lanefs_throttle_over(struct lanefs_domain *domain)
{
	return !lanefs_segments_exhausted(domain) || READ_ONCE(domain->d_barren) ||
	       !READ_ONCE(domain->d_sbi->s_collecting) || READ_ONCE(domain->d_sbi->s_aborted);
}

/**
 * lanefs_throttle_wait() - wait for segments of a log, so that collectors catch up with writers
 * @domain: of the inode, without a free segment for data
 *
 * Waits up to LANEFS_THROTTLE jiffies; with strict=on until a segment is free, or collectors have
 * nothing to collect. Before that it waits for free segments to be counted.
 *
 * Context: Before handles, pages and locks of the inode.
 * Return: 0, or -EINTR: the task is to die.
 */
int lanefs_throttle_wait(struct lanefs_domain *domain)
{
	bool strict = READ_ONCE(domain->d_sbi->s_options.strict) == LANEFS_STRICT_ON;
	s64 seen = lanefs_count_seen(domain);
	u64 started, waited;
	long left;

	while (lanefs_segments_exhausted(domain) && lanefs_count_more(domain, &seen))
		;
	if (lanefs_throttle_over(domain))
		return 0;
	started = ktime_get_ns();
	do {
		lanefs_gc_wake(domain);
		left = wait_event_killable_timeout(domain->d_wait_segments,
						   lanefs_throttle_over(domain),
						   strict ? LANEFS_THROTTLE_AGAIN : LANEFS_THROTTLE);
	} while (!left && strict);
	waited = ktime_get_ns() - started;
	atomic64_inc(&domain->d_stalls);
	atomic64_add(waited, &domain->d_stalled);
	trace_lanefs_stall(domain->d_journal, waited);
	return left < 0 ? -EINTR : 0;
}
