// SPDX-License-Identifier: GPL-2.0-only
/* Making room where blocks were not found: what waits to be written, or to be free, may hold some. */
#include <linux/writeback.h>

#include "space/space.h"

#define LANEFS_RETRIES		3	/* of who finds too few */

/**
 * lanefs_flush_delayed() - write back all delayed data
 * @sb: the file system
 *
 * Reservations take more free blocks than the data will use.
 *
 * Context: Without page locks and handles.
 * Return: 1: there was some; 0: there was none; -EAGAIN: there is, but a freeze or a remount is
 * under way.
 */
int lanefs_flush_delayed(struct super_block *sb)
{
	if (!lanefs_delayed_anywhere(LANEFS_SB(sb)))
		return 0;
	if (!down_read_trylock(&sb->s_umount))
		return -EAGAIN;
	sync_inodes_sb(sb);
	up_read(&sb->s_umount);
	return 1;
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
	flushed = flush && lanefs_flush_delayed(sbi->s_vfs);
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
