// SPDX-License-Identifier: GPL-2.0-only
/*
 * The flush of the device's cache between a transaction's blocks and its commit block.
 *
 * Transactions of several domains that an fsync needs share one: when all of their commits have
 * written their journals, one of them flushes for all. Each would flush else, and a device does one
 * flush after the other. A transaction shares only if its commit can begin at once, as there is no
 * commit before it in its domain to wait for. So a commit waits for others' handles, and for the
 * writes of their journals, and never for one that waits itself.
 */
#include <linux/blkdev.h>
#include <linux/slab.h>

#include "journal/journal.h"

#define LANEFS_FLUSH_TAKEN	-1

struct lanefs_flush {
	refcount_t users;	/* transactions, and who made it */
	atomic_t writing;	/* how many of them are not ready; then LANEFS_FLUSH_TAKEN */
	bool done;
	int err;
};

void lanefs_flush_put(struct lanefs_flush *flush)
{
	if (flush && refcount_dec_and_test(&flush->users))
		kfree(flush);
}

/* Has the domain's running transaction share the flush, if its commit can begin at once. */
static void lanefs_flush_join(struct lanefs_journal *journal, u64 seq, struct lanefs_flush *flush)
{
	struct lanefs_txn *txn;

	spin_lock(&journal->j_lock);
	txn = journal->j_running;
	if (txn && txn->t_seq <= seq && !txn->t_locked && !txn->t_flush && !journal->j_committing) {
		refcount_inc(&flush->users);
		atomic_inc(&flush->writing);
		txn->t_flush = flush;
	}
	spin_unlock(&journal->j_lock);
}

/*
 * Has the running ones of these transactions (by domain) share a flush. The caller is to request
 * their commits, all of them. A kernel thread's do not share: some of the threads that are to
 * commit may be frozen already, and those that waited for them could not be.
 */
void lanefs_flush_share(struct lanefs_sb *sbi, const u64 *seq)
{
	struct lanefs_flush *flush;
	u32 i;

	if (!bdev_write_cache(sbi->s_vfs->s_bdev) || current->flags & PF_KTHREAD)
		return;
	flush = kzalloc(sizeof(*flush), GFP_NOFS | __GFP_NOFAIL);
	refcount_set(&flush->users, 1);
	atomic_set(&flush->writing, 1);
	for (i = 0; i < sbi->s_domains; i++)
		if (READ_ONCE(sbi->s_journal[i]->j_committed) < seq[i])
			lanefs_flush_join(sbi->s_journal[i], seq[i], flush);
	if (atomic_dec_and_test(&flush->writing))
		wake_up_all(&sbi->s_wait_flushed);
	lanefs_flush_put(flush);
}

/* Flushes after the journal of a transaction was written, or could not be. */
int lanefs_flush_journal(struct lanefs_txn *txn)
{
	struct lanefs_sb *sbi = txn->t_journal->j_sbi;
	struct lanefs_flush *flush = txn->t_flush;
	bool mine;
	int err;

	if (!flush)
		return blkdev_issue_flush(sbi->s_vfs->s_bdev);
	atomic_dec(&flush->writing);
	/* After an abort some of the others are not committed. */
	wait_event(sbi->s_wait_flushed,
		   (mine = atomic_cmpxchg(&flush->writing, 0, LANEFS_FLUSH_TAKEN) == 0) ||
		   smp_load_acquire(&flush->done) || READ_ONCE(sbi->s_aborted));
	if (smp_load_acquire(&flush->done))
		return flush->err;
	err = blkdev_issue_flush(sbi->s_vfs->s_bdev);
	if (mine) {
		flush->err = err;
		smp_store_release(&flush->done, true);
		wake_up_all(&sbi->s_wait_flushed);
	}
	return err;
}
