// SPDX-License-Identifier: GPL-2.0-only
/*
 * Has transactions committed until all that they need is on disk, in their own domain and in others
 * (format.h), so that they are durable; who wants that makes them stable as well (stable.c).
 */
#include <linux/slab.h>

#include "journal/journal.h"

static int lanefs_commit_needed(struct lanefs_sb *sbi, const u64 *need)
{
	int err = 0;
	u32 i;

	lanefs_flush_share(sbi, need);
	for (i = 0; i < sbi->s_domains; i++)
		if (READ_ONCE(sbi->s_journal[i]->j_committed) < need[i])
			lanefs_commit_request(sbi->s_journal[i], need[i], true);
	for (i = 0; i < sbi->s_domains && !err; i++)
		if (READ_ONCE(sbi->s_journal[i]->j_committed) < need[i])
			err = lanefs_commit_wait(sbi->s_journal[i], need[i]);
	return err;
}

/* Waits for the commit that is under way, if there is one. */
static int lanefs_commit_under_way(struct lanefs_journal *journal)
{
	u64 seq;

	spin_lock(&journal->j_lock);
	seq = journal->j_committing ? journal->j_committing->t_seq : 0;
	spin_unlock(&journal->j_lock);
	return seq ? lanefs_commit_wait(journal, seq) : 0;
}

/*
 * Waits for the commits that are under way in the domains of these transactions, and of what they
 * need so far: then all of their own can begin at once, and share a flush (flush.c).
 */
static int lanefs_commits_under_way(struct lanefs_sb *sbi, const u64 *need)
{
	u64 *closure = kmemdup(need, sbi->s_domains * sizeof(*need), GFP_NOFS | __GFP_NOFAIL);
	u64 *seen = kcalloc(sbi->s_domains, sizeof(*seen), GFP_NOFS | __GFP_NOFAIL);
	int err = 0;
	u32 i;

	lanefs_needs_extend(sbi, closure, seen, true, 0);
	for (i = 0; i < sbi->s_domains && !err; i++)
		if (READ_ONCE(sbi->s_journal[i]->j_committed) < closure[i])
			err = lanefs_commit_under_way(sbi->s_journal[i]);
	kfree(seen);
	kfree(closure);
	return err;
}

/*
 * Extends `need` to the closure of the transactions that must be on disk, commits those that are not
 * yet, in all domains at once, and makes all of them stable.
 */
static int lanefs_stabilise_closure(struct lanefs_sb *sbi, u64 *need)
{
	u64 *seen = kcalloc(sbi->s_domains, sizeof(*seen), GFP_NOFS | __GFP_NOFAIL);
	int err = lanefs_commits_under_way(sbi, need);
	u64 ticket = atomic64_inc_return(&sbi->s_tickets);

	while (!err && lanefs_needs_extend(sbi, need, seen, true, ticket))
		err = lanefs_commit_needed(sbi, need);
	kfree(seen);
	return err ?: lanefs_stable_advance_all(sbi, need);
}

/* Whether nothing up to `seq` that is not stable needs anything of another domain, up to now. */
static bool lanefs_txns_untied(struct lanefs_journal *journal, u64 seq)
{
	struct lanefs_txn *running, *committing, *txn;
	bool tied;

	if (READ_ONCE(journal->j_tied) <= READ_ONCE(journal->j_stable))
		return true;
	spin_lock(&journal->j_lock);
	running = journal->j_running;
	committing = journal->j_committing;
	tied = (running && running->t_seq <= seq && running->t_tied) ||
	       (committing && committing->t_tied);
	list_for_each_entry_reverse(txn, &journal->j_txns, t_node) {
		if (tied || txn->t_seq <= journal->j_stable)
			break;
		tied = txn->t_seq <= seq && txn->t_tied;
	}
	spin_unlock(&journal->j_lock);
	return !tied;
}

/**
 * lanefs_make_durable() - wait until transactions, and all that they need, are on disk
 * @journal: the domain's
 * @seq: its last transaction that is to be
 *
 * As a rule no other domain has to be looked at, and it is left to who has committed to make them
 * stable.
 *
 * Context: Outside of handles and their locks, as it waits for commits, or commits itself.
 * Return: 0, or -EIO after an abort.
 */
int lanefs_make_durable(struct lanefs_journal *journal, u64 seq)
{
	struct lanefs_sb *sbi = journal->j_sbi;
	u64 *need;
	int err;

	lanefs_may_wait(sbi);
	if (READ_ONCE(journal->j_stable) >= seq)
		return 0;
	if (lanefs_txns_untied(journal, seq)) {
		lanefs_commit_request(journal, seq, false);
		err = lanefs_commit_wait(journal, seq);
		if (err || lanefs_txns_untied(journal, seq))
			return err;
	}
	need = kcalloc(sbi->s_domains, sizeof(*need), GFP_NOFS | __GFP_NOFAIL);
	need[journal->j_id] = seq;
	err = lanefs_stabilise_closure(sbi, need);
	kfree(need);
	return err;
}

/**
 * lanefs_stabilise() - make transactions durable, and stable
 * @journal: the domain's
 * @seq: its last transaction that is to be
 *
 * Context: As lanefs_make_durable().
 * Return: 0, or -EIO after an abort.
 */
int lanefs_stabilise(struct lanefs_journal *journal, u64 seq)
{
	int err = lanefs_make_durable(journal, seq);

	if (err)
		return err;
	/* Either they need nothing of others, or they are stable already. */
	lanefs_stable_advance(journal, seq);
	return READ_ONCE(journal->j_stable) >= seq ? 0 : -EIO;
}

/**
 * lanefs_stabilise_all() - make all that was done before stable, in all domains
 * @sbi: the file system
 *
 * Context: As lanefs_make_durable().
 * Return: 0, or -EIO after an abort.
 */
int lanefs_stabilise_all(struct lanefs_sb *sbi)
{
	u64 *need = kcalloc(sbi->s_domains, sizeof(*need), GFP_NOFS | __GFP_NOFAIL);
	struct lanefs_journal *journal;
	int err;
	u32 i;

	lanefs_may_wait(sbi);
	for (i = 0; i < sbi->s_domains; i++) {
		journal = sbi->s_journal[i];
		spin_lock(&journal->j_lock);
		need[i] = journal->j_next_seq - 1;
		spin_unlock(&journal->j_lock);
	}
	err = lanefs_stabilise_closure(sbi, need);
	kfree(need);
	return err;
}
