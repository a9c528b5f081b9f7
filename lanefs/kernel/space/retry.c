// SPDX-License-Identifier: GPL-2.0-only
/* Making room where blocks were not found: what waits to be written, or to be free, may hold some. */
#include <linux/sched/signal.h>
#include <linux/writeback.h>

#include "space/space.h"

#define LANEFS_RETRIES		3	/* of who finds too few */

/**
 * lanefs_flush_delayed() - write back all delayed data
 * @sb: the file system
 * @wait: where a freeze or a remount holds s_umount, wait until it does not
 *
 * Reservations take more free blocks than the data will use.
 *
 * With s_umount held a freeze waits for page faults, and not for writers: who handles a fault must
 * not wait here. A remount waits for neither; an emergency remount waits for collectors, and those may
 * wait for a writer (ablate=svp), which gives up then. It polls, as lockdep would report a deadlock of
 * a freeze, a fault and a writer: it does not know that a writer and that step of a freeze exclude
 * each other.
 *
 * Context: Without page locks and handles.
 * Return: 1: there was some; 0: there was none; -EAGAIN: there is, but s_umount is held.
 */
int lanefs_flush_delayed(struct super_block *sb, bool wait)
{
	bool waited = false;

	while (lanefs_delayed_anywhere(LANEFS_SB(sb))) {
		if (down_read_trylock(&sb->s_umount)) {
			sync_inodes_sb(sb);
			up_read(&sb->s_umount);
			return 1;
		}
		if (!wait || fatal_signal_pending(current) || READ_ONCE(sb->s_readonly_remount))
			return -EAGAIN;
		schedule_timeout_killable(1);
		waited = true;
	}
	/* Who held s_umount has written it. */
	return waited;
}

/**
 * lanefs_retry_alloc() - make room after -ENOSPC
 * @sbi: the file system
 * @flush: no page is locked, so that delayed data can be written
 * @retries: how often it was tried; 0 at first
 *
 * Context: Outside of handles; waits for commits and discards.
 * Return: whether it is worth trying again.
 */
bool lanefs_retry_alloc(struct lanefs_sb *sbi, bool flush, int *retries)
{
	bool flushed, pending = false;
	u32 i;

	if (++*retries > LANEFS_RETRIES)
		return false;
	/* Others may have reserved blocks since the last time. */
	flushed = flush && lanefs_flush_delayed(sbi->s_vfs, true) > 0;
	for (i = 0; i < sbi->s_domains; i++)
		pending |= lanefs_space_pending(sbi->s_domain[i]) > 0;
	if (!flushed && !pending) {
		/* It may have become free since: one last time. */
		if (*retries == LANEFS_RETRIES)
			return false;
		*retries = LANEFS_RETRIES;
		return true;
	}
	if (pending && lanefs_stabilise_all(sbi))
		return false;
	lanefs_discard_wait(sbi);
	return true;
}
