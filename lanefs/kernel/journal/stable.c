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
void lanefs_stable_advance(struct lanefs_journal *journal, u64 seq)
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

/*
 * Extends `need` by what its transactions need, and what these do; returns whether one of them was
 * not committed then, so that it may need more. Unless `whole`, it ends at the first such one. With
 * a ticket they are not tied to others any more (lanefs_hold_ties()).
 */
bool lanefs_needs_extend(struct lanefs_sb *sbi, u64 *need, u64 *seen, bool whole, u64 ticket)
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

/*
 * Makes each domain's transactions up to `need` stable; they and all that they need are on disk.
 * -EIO: a journal that was stopped after an abort has given up what was to become stable.
 */
int lanefs_stable_advance_all(struct lanefs_sb *sbi, const u64 *need)
{
	int err = 0;
	u32 i;

	for (i = 0; i < sbi->s_domains; i++)
		if (need[i] > READ_ONCE(sbi->s_journal[i]->j_stable))
			lanefs_stable_advance(sbi->s_journal[i], need[i]);
	for (i = 0; i < sbi->s_domains && !err; i++)
		if (need[i] > READ_ONCE(sbi->s_journal[i]->j_stable))
			err = -EIO;
	return err;
}

/* After a commit: makes stable what is, without asking for other commits. */
void lanefs_stable_try(struct lanefs_journal *journal)
{
	struct lanefs_sb *sbi = journal->j_sbi;
	u64 committed = READ_ONCE(journal->j_committed), untied = READ_ONCE(journal->j_stable);
	struct lanefs_txn *txn;
	u64 *need, *seen;

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
	seen = kcalloc(sbi->s_domains, sizeof(*seen), GFP_NOFS | __GFP_NOFAIL);
	need[journal->j_id] = committed;
	if (!lanefs_needs_extend(sbi, need, seen, false, 0))
		lanefs_stable_advance_all(sbi, need);
	kfree(seen);
	kfree(need);
}
