// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stability: a transaction is stable when all that it needs is on disk, in its own domain and in
 * others (format.h). Only then are its blocks written in place, its journal space reclaimed and the
 * blocks that it freed used again.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "journal/journal.h"

/* The contents that are to be written in place from now on. */
static void lanefs_home_add(struct lanefs_txn *txn, struct lanefs_journal_vec *vec)
{
	struct lanefs_journal *journal = txn->t_journal;
	struct lanefs_buf *buf = vec->buf;
	struct page *old;

	spin_lock(&journal->j_home_lock);
	old = buf->b_home;
	buf->b_home = vec->page;
	buf->b_home_seq = txn->t_seq;
	if (list_empty(&buf->b_home_node))
		atomic_inc(&buf->b_ref);
	list_move_tail(&buf->b_home_node, &journal->j_home);
	spin_unlock(&journal->j_home_lock);
	if (old)
		put_page(old);
	lanefs_buf_put(buf);
}

static void lanefs_txn_stable(struct lanefs_txn *txn)
{
	struct lanefs_journal *journal = txn->t_journal;
	struct lanefs_freed *freed, *next;
	unsigned int i;

	for (i = 0; i < txn->t_nbufs; i++)
		lanefs_home_add(txn, &txn->t_vec[i]);
	kvfree(txn->t_vec);
	txn->t_vec = NULL;
	list_for_each_entry_safe(freed, next, &txn->t_freed, node) {
		if (freed->metadata)
			lanefs_buf_forget(journal, freed->start);
		list_del(&freed->node);
		journal->j_sbi->s_journal_ops->freed_stable(journal, freed);
	}
}

static struct lanefs_txn *lanefs_txn_find(struct lanefs_journal *journal, u64 seq)
{
	struct lanefs_txn *txn, *found = NULL;

	spin_lock(&journal->j_lock);
	list_for_each_entry_reverse(txn, &journal->j_txns, t_node) {
		if (txn->t_seq == seq) {
			found = txn;
			break;
		}
	}
	spin_unlock(&journal->j_lock);
	return found;
}

/* The domain's transactions up to `seq` are stable. */
static void lanefs_stable_advance(struct lanefs_journal *journal, u64 seq)
{
	struct lanefs_txn *txn;

	mutex_lock(&journal->j_stable_mutex);
	while (journal->j_stable < seq) {
		txn = lanefs_txn_find(journal, journal->j_stable + 1);
		if (!txn)
			break;	/* After an abort the journal was stopped, and gave it up. */
		lanefs_txn_stable(txn);
		spin_lock(&journal->j_lock);
		WRITE_ONCE(journal->j_stable, txn->t_seq);
		if (journal->j_free < journal->j_layout->journal_blocks / 2)
			lanefs_checkpoint_request(journal);
		spin_unlock(&journal->j_lock);
	}
	mutex_unlock(&journal->j_stable_mutex);
}

/* Adds what the transaction needs, if there is one, and it is tied, and not behind `to`. */
static void lanefs_needs_add(const struct lanefs_txn *txn, u64 to, u64 *need)
{
	u32 i;

	if (!txn || txn->t_seq > to || !txn->t_tied)
		return;
	for (i = 0; i < txn->t_journal->j_sbi->s_domains; i++)
		need[i] = max(need[i], txn->t_needs[i]);
}

/* Adds what the domain's transactions after `from`, up to `to`, need: also the running one. */
static void lanefs_needs_of(struct lanefs_journal *journal, u64 from, u64 to, u64 *need)
{
	struct lanefs_txn *txn;

	spin_lock(&journal->j_lock);
	lanefs_needs_add(journal->j_running, to, need);
	lanefs_needs_add(journal->j_committing, to, need);
	list_for_each_entry_reverse(txn, &journal->j_txns, t_node) {
		if (txn->t_seq <= from)
			break;
		lanefs_needs_add(txn, to, need);
	}
	spin_unlock(&journal->j_lock);
}

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

/*
 * Extends `need` by what its transactions need, and what these do; returns whether one of them was
 * not committed then, so that it may need more. Unless `whole`, it ends at the first such one. With
 * a ticket they are not tied to others any more (lanefs_hold_ties()).
 */
static bool lanefs_needs_extend(struct lanefs_sb *sbi, u64 *need, u64 *seen, bool whole, u64 ticket)
{
	bool changed = true, missing = false;
	struct lanefs_journal *journal;
	u64 to;
	u32 i;

	for (i = 0; i < sbi->s_domains; i++)
		seen[i] = READ_ONCE(sbi->s_journal[i]->j_stable);
	while (changed) {
		changed = false;
		for (i = 0; i < sbi->s_domains; i++) {
			journal = sbi->s_journal[i];
			to = need[i];
			if (to <= seen[i])
				continue;
			if (READ_ONCE(journal->j_committed) < to)
				missing = true;
			if (missing && !whole)
				return true;
			if (ticket)
				lanefs_hold_ties(journal, to, ticket);
			lanefs_needs_of(journal, seen[i], to, need);
			seen[i] = to;
			changed = true;
		}
	}
	return missing;
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
 * Extends `need` to the closure of the transactions that must be on disk, and makes them stable.
 * With `force` it commits the missing ones, in all domains at once; otherwise it returns -EAGAIN.
 */
static int lanefs_stabilise_closure(struct lanefs_sb *sbi, u64 *need, bool force)
{
	u64 *seen = kcalloc(sbi->s_domains, sizeof(*seen), GFP_NOFS | __GFP_NOFAIL);
	int err = force ? lanefs_commits_under_way(sbi, need) : 0;
	u64 ticket = force ? atomic64_inc_return(&sbi->s_tickets) : 0;
	u32 i;

	while (!err && lanefs_needs_extend(sbi, need, seen, force, ticket))
		err = force ? lanefs_commit_needed(sbi, need) : -EAGAIN;
	if (err)
		goto out;
	for (i = 0; i < sbi->s_domains; i++)
		if (need[i] > READ_ONCE(sbi->s_journal[i]->j_stable))
			lanefs_stable_advance(sbi->s_journal[i], need[i]);
	/* A journal that was stopped after an abort has given up what was to become stable. */
	for (i = 0; i < sbi->s_domains && !err; i++)
		if (need[i] > READ_ONCE(sbi->s_journal[i]->j_stable))
			err = -EIO;
out:
	kfree(seen);
	return err;
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

/*
 * Makes the domain's transactions up to `seq`, and all that they need, durable. As a rule no other
 * domain has to be looked at, and it is left to who has committed to make them stable.
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
	err = lanefs_stabilise_closure(sbi, need, true);
	kfree(need);
	return err;
}

/* Makes them stable as well. */
int lanefs_stabilise(struct lanefs_journal *journal, u64 seq)
{
	int err = lanefs_make_durable(journal, seq);

	if (err)
		return err;
	/* Either they need nothing of others, or they are stable already. */
	lanefs_stable_advance(journal, seq);
	return READ_ONCE(journal->j_stable) >= seq ? 0 : -EIO;
}

/* Makes all that was done before durable. */
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
	err = lanefs_stabilise_closure(sbi, need, true);
	kfree(need);
	return err;
}

/* After a commit: makes stable what is, without asking for other commits. */
void lanefs_stable_try(struct lanefs_journal *journal)
{
	struct lanefs_sb *sbi = journal->j_sbi;
	u64 committed = READ_ONCE(journal->j_committed), untied = READ_ONCE(journal->j_stable);
	struct lanefs_txn *txn;
	u64 *need;

	spin_lock(&journal->j_lock);
	list_for_each_entry(txn, &journal->j_txns, t_node) {
		if (txn->t_seq <= untied)
			continue;
		if (txn->t_tied || txn->t_seq > committed)
			break;
		untied = txn->t_seq;
	}
	spin_unlock(&journal->j_lock);
	lanefs_stable_advance(journal, untied);
	if (untied >= committed)
		return;
	need = kcalloc(sbi->s_domains, sizeof(*need), GFP_NOFS | __GFP_NOFAIL);
	need[journal->j_id] = committed;
	lanefs_stabilise_closure(sbi, need, false);
	kfree(need);
}
