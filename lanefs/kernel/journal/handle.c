// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handles join the running transactions of domains, which are committed in the end (commit.c).
 *
 * An operation opens one handle on all domains that it changes (lanefs_handle_start()), which ties their
 * transactions; format.h has the argument why recovery is atomic. Journal space for the handle's
 * credits is there before it joins, so a commit never waits for space. A task that must wait for
 * one domain first leaves the others, so waiting for handles to end cannot deadlock. It takes a
 * ticket then, and from those who come later, or have a later one, it is left room in all domains
 * that it waits to join: so the one that has waited longest does not wait for them.
 *
 * Who makes transactions of several domains durable (durable.c) takes a ticket as well, and lets no
 * handle of several domains join them that has not waited longer: else these would need, one after
 * the other, what began meanwhile.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "core/slot.h"
#include "journal/journal.h"
#include "journal/trace.h"

#define LANEFS_JOURNAL_SLACK	32	/* blocks, should an operation need more than its credits */

/* Blocks in the journal for a transaction of so many metadata blocks. */
u64 lanefs_journal_need(u64 blocks, u64 revokes)
{
	return blocks + DIV_ROUND_UP_ULL(blocks, LANEFS_JOURNAL_RECORDS) +
	       DIV_ROUND_UP_ULL(revokes, LANEFS_JOURNAL_RECORDS) + 1;
}

static struct lanefs_txn *lanefs_txn_new(struct lanefs_sb *sbi)
{
	struct lanefs_txn *txn = kzalloc(sizeof(*txn), GFP_NOFS | __GFP_NOFAIL);

	txn->t_needs = kcalloc(sbi->s_domains, sizeof(*txn->t_needs), GFP_NOFS | __GFP_NOFAIL);
	spin_lock_init(&txn->t_lock);
	lanefs_joinlist_init(&txn->t_bufs);
	INIT_LIST_HEAD(&txn->t_freed);
	INIT_LIST_HEAD(&txn->t_node);
	return txn;
}

void lanefs_txn_free(struct lanefs_txn *txn)
{
	if (!txn)
		return;
	lanefs_flush_put(txn->t_flush);
	kvfree(txn->t_vec);
	kfree(txn->t_needs);
	kfree(txn);
}

/* Asks for the commit of the running transaction, as lanefs_commit_request() does; under j_lock. */
static void lanefs_want_commit(struct lanefs_journal *journal, const struct lanefs_txn *txn)
{
	lockdep_assert_held(&journal->j_lock);
	if (txn->t_seq > journal->j_wanted)
		WRITE_ONCE(journal->j_wanted, txn->t_seq);
	wake_up(&journal->j_wait_commit_work);
}

/* Credits of those who have waited longer than `waiter`, or, without one, of all; under j_lock. */
static unsigned int lanefs_older_credits(const struct lanefs_journal *journal,
					 const struct lanefs_waiter *waiter)
{
	const struct lanefs_waiter *other;
	unsigned int credits = 0;

	lockdep_assert_held(&journal->j_lock);
	list_for_each_entry(other, &journal->j_waiters, w_node) {
		if (waiter && other->w_ticket >= waiter->w_ticket)
			break;
		credits += other->w_credits;
	}
	return credits;
}

/*
 * Whether the running transaction has room for so many credits, and as many as `older` beside;
 * under j_lock. -EAGAIN: not this one; -ENOSPC: the journal does not.
 */
static int lanefs_txn_room(const struct lanefs_journal *journal, unsigned int credits,
			   unsigned int older)
{
	const struct lanefs_txn *txn = journal->j_running;
	unsigned int reserved = older + (txn ? txn->t_reserved : 0);
	/* More are of handles whose credits are in t_reserved until they end. */
	unsigned int revokes = txn ? READ_ONCE(txn->t_revokes) : 0;

	lockdep_assert_held(&journal->j_lock);
	if (txn && txn->t_locked)
		return -EAGAIN;
	if (reserved && reserved + credits > journal->j_max_txn)
		return -EAGAIN;
	if (journal->j_free < lanefs_journal_need(reserved + credits, revokes + LANEFS_JOURNAL_RECORDS) +
			     LANEFS_JOURNAL_SLACK)
		return -ENOSPC;
	return 0;
}

/* Whether a handle of several domains may not join the running transaction; under j_lock. */
static bool lanefs_ties_held(const struct lanefs_journal *journal, const struct lanefs_waiter *waiter)
{
	u64 seq = journal->j_running ? journal->j_running->t_seq : journal->j_next_seq;

	lockdep_assert_held(&journal->j_lock);
	return seq <= journal->j_held_seq && !(waiter && waiter->w_ticket < journal->j_held_ticket);
}

/*
 * Whether this part of the handle can join its domain now; under j_lock. `waiter`: as who it has
 * waited, if it has; those who have waited longer are left room. -EAGAIN: wait on j_wait_join,
 * holding no handle of any domain.
 */
static int lanefs_handle_admit(const struct lanefs_handle *h, int part,
			       const struct lanefs_waiter *waiter)
{
	struct lanefs_journal *journal = h->h_part[part].journal;
	unsigned int credits = h->h_part[part].credits;
	unsigned int older = lanefs_older_credits(journal, waiter);
	struct lanefs_txn *txn = journal->j_running;
	int err;

	lockdep_assert_held(&journal->j_lock);
	/* Nobody would commit what joins a journal that does not run. */
	if (READ_ONCE(journal->j_sbi->s_aborted) || !READ_ONCE(journal->j_sbi->s_started))
		return -EROFS;
	if (h->h_parts > 1 && lanefs_ties_held(journal, waiter))
		return -EAGAIN;
	err = lanefs_txn_room(journal, credits, older);
	if (err && txn && !txn->t_locked) {
		txn->t_reserved -= lanefs_slots_close(journal);
		err = lanefs_txn_room(journal, credits, older);
	}
	if (err == -ENOSPC)
		lanefs_checkpoint_request(journal);
	else if (err && txn && !txn->t_locked &&
		 (atomic_read(&txn->t_joined) > journal->j_max_txn / 2 ||
		  (!txn->t_handles && !lanefs_slots_busy(journal))))
		lanefs_want_commit(journal, txn);
	return err ? -EAGAIN : 0;
}

static bool lanefs_handle_admitted(const struct lanefs_handle *h, int part,
				   const struct lanefs_waiter *waiter)
{
	struct lanefs_journal *journal = h->h_part[part].journal;
	int err;

	spin_lock(&journal->j_lock);
	err = lanefs_handle_admit(h, part, waiter);
	spin_unlock(&journal->j_lock);
	return err != -EAGAIN;
}

/* The next handles on this CPU need not come here; under j_lock. */
static void lanefs_slot_grant(struct lanefs_journal *journal, struct lanefs_txn *txn,
			      unsigned int credits)
{
	unsigned int share = lanefs_slot_share(journal, credits);

	lockdep_assert_held(&journal->j_lock);
	if (READ_ONCE(journal->j_sbi->s_options.journal) != LANEFS_JOURNAL_CONCURRENT ||
	    !list_empty(&journal->j_waiters) || !share || lanefs_txn_room(journal, share, 0))
		return;
	txn->t_reserved += share;
	lanefs_slot_open(journal, share);
}

/* Under j_lock. -ENOBUFS: there is no running transaction, give a fresh one. */
static int lanefs_handle_join_locked(struct lanefs_handle *h, int part,
				     const struct lanefs_waiter *waiter,
				     struct lanefs_txn **fresh)
{
	struct lanefs_journal *journal = h->h_part[part].journal;
	unsigned int credits = h->h_part[part].credits;
	struct lanefs_txn *txn;
	int err;

	lockdep_assert_held(&journal->j_lock);
	err = lanefs_handle_admit(h, part, waiter);
	if (err)
		return err;
	txn = journal->j_running;
	if (!txn) {
		txn = *fresh;
		if (!txn)
			return -ENOBUFS;
		*fresh = NULL;
		txn->t_journal = journal;
		txn->t_seq = journal->j_next_seq++;
		txn->t_started = jiffies;
		WRITE_ONCE(journal->j_running, txn);
		WRITE_ONCE(journal->j_running_seq, txn->t_seq);
	}
	txn->t_handles++;
	txn->t_reserved += credits;
	txn->t_untied += h->h_parts > 1;
	h->h_part[part].txn = txn;
	lanefs_slot_grant(journal, txn, credits);
	return 0;
}

static int lanefs_handle_join(struct lanefs_handle *h, int part, const struct lanefs_waiter *waiter,
			      struct lanefs_txn **fresh)
{
	struct lanefs_journal *journal = h->h_part[part].journal;
	int err;

	/* What is to be tied asks under j_lock whether it may be. */
	h->h_part[part].slot = h->h_parts > 1 ? NULL :
			       lanefs_slot_enter(journal, h->h_part[part].credits);
	if (h->h_part[part].slot) {
		/* It stays the running transaction until this handle has ended. */
		h->h_part[part].txn = READ_ONCE(journal->j_running);
		return 0;
	}
	spin_lock(&journal->j_lock);
	err = lanefs_handle_join_locked(h, part, waiter, fresh);
	spin_unlock(&journal->j_lock);
	return err;
}

/* Under j_lock: a handle that joined has tied the transaction, or is about to leave it. */
static void lanefs_untied_ended(struct lanefs_txn *txn)
{
	struct lanefs_journal *journal = txn->t_journal;

	lockdep_assert_held(&journal->j_lock);
	if (!--txn->t_untied && wq_has_sleeper(&journal->j_wait_drained))
		wake_up(&journal->j_wait_drained);
}

static void lanefs_handle_leave(struct lanefs_handle *h, int part)
{
	struct lanefs_journal *journal = h->h_part[part].journal;
	unsigned int credits = h->h_part[part].credits, used = h->h_part[part].used;
	u64 *slot = h->h_part[part].slot;
	struct lanefs_txn *txn = h->h_part[part].txn;
	unsigned int left = credits - min(credits, used);
	bool drained = false, room = false;
	u64 seq = txn->t_seq;

	if (slot && lanefs_slot_give(slot, left))
		return;
	spin_lock(&journal->j_lock);
	txn = journal->j_running;
	/* From a slot that was closed it has left already, and the commit need not have waited. */
	if (txn && txn->t_seq == seq) {
		txn->t_reserved -= left;
		if (!slot)
			txn->t_handles--;
		drained = txn->t_locked && !txn->t_handles;
		room = !txn->t_locked && waitqueue_active(&journal->j_wait_join);
	}
	spin_unlock(&journal->j_lock);
	if (drained)
		wake_up(&journal->j_wait_drained);
	if (room)
		wake_up(&journal->j_wait_join);
}

/*
 * Joins all domains, or, if one cannot be joined, none: then *blocked is that part. `waiters`: one
 * for each part, or NULL.
 */
static int lanefs_handle_join_all(struct lanefs_handle *h, const struct lanefs_waiter *waiters,
				  struct lanefs_txn **fresh, int *blocked)
{
	int i, err;

	for (i = 0; i < h->h_parts; i++) {
		err = lanefs_handle_join(h, i, waiters ? &waiters[i] : NULL, fresh);
		if (!err)
			continue;
		*blocked = i;
		while (--i >= 0) {
			spin_lock(&h->h_part[i].journal->j_lock);
			lanefs_untied_ended(h->h_part[i].txn);
			spin_unlock(&h->h_part[i].journal->j_lock);
			lanefs_handle_leave(h, i);
		}
		return err;
	}
	return 0;
}

/* Queues a waiting task in all its domains, so that each leaves room for it. */
static void lanefs_waiter_queue(struct lanefs_handle *h, struct lanefs_waiter *waiters)
{
	u64 ticket = atomic64_inc_return(&h->h_sbi->s_tickets);
	struct lanefs_waiter *before;
	struct lanefs_journal *journal;
	int i;

	for (i = 0; i < h->h_parts; i++) {
		journal = h->h_part[i].journal;
		waiters[i].w_ticket = ticket;
		waiters[i].w_credits = h->h_part[i].credits;
		spin_lock(&journal->j_lock);
		list_for_each_entry_reverse(before, &journal->j_waiters, w_node)
			if (before->w_ticket < ticket)
				break;
		list_add(&waiters[i].w_node, &before->w_node);
		spin_unlock(&journal->j_lock);
	}
}

static void lanefs_waiter_unqueue(struct lanefs_handle *h, struct lanefs_waiter *waiters)
{
	struct lanefs_journal *journal;
	bool more;
	int i;

	for (i = 0; i < h->h_parts; i++) {
		journal = h->h_part[i].journal;
		spin_lock(&journal->j_lock);
		list_del(&waiters[i].w_node);
		more = !list_empty(&journal->j_waiters);
		spin_unlock(&journal->j_lock);
		if (more)
			wake_up(&journal->j_wait_join);
	}
}

/* Waits until the handle may be let in, and helps where room is made, if others can rely on it. */
static void lanefs_handle_wait(const struct lanefs_handle *h, int part,
			       const struct lanefs_waiter *waiter)
{
	struct lanefs_journal *journal = h->h_part[part].journal;
	bool helps = !lanefs_may_be_throttled(journal->j_sbi);

	for (;;) {
		wait_event(journal->j_wait_join,
			   (helps && READ_ONCE(journal->j_home_coop)) ||
			   lanefs_handle_admitted(h, part, waiter));
		if (!helps || !READ_ONCE(journal->j_home_coop))
			return;
		lanefs_coop_help(journal, &journal->j_home_coop);
	}
}

/* Each of the transactions joined needs the others. */
static void lanefs_handle_tie(struct lanefs_handle *h)
{
	int i, j;

	for (i = 0; i < h->h_parts; i++) {
		struct lanefs_txn *txn = h->h_part[i].txn;

		spin_lock(&txn->t_journal->j_lock);
		for (j = 0; j < h->h_parts; j++) {
			u32 other = h->h_part[j].journal->j_id;

			if (i != j && txn->t_needs[other] < h->h_part[j].txn->t_seq)
				txn->t_needs[other] = h->h_part[j].txn->t_seq;
		}
		txn->t_tied = true;
		WRITE_ONCE(txn->t_journal->j_tied, txn->t_seq);
		lanefs_untied_ended(txn);
		spin_unlock(&txn->t_journal->j_lock);
	}
}

/**
 * lanefs_handle_start() - open a handle
 * @h: the handle
 * @sbi: the file system
 * @credits: blocks of each domain that the operation may change
 * @domains: what it changes; may repeat
 * @count: of @domains
 *
 * May wait for journal space, so the caller holds no lock that is taken within handles.
 *
 * Return: 0, or -EROFS if the file system was aborted or has become read-only.
 */
int lanefs_handle_start(struct lanefs_handle *h, struct lanefs_sb *sbi, unsigned int credits,
			const u32 *domains, int count)
{
	struct lanefs_waiter waiters[LANEFS_HANDLE_PARTS];
	struct lanefs_txn *fresh = NULL;
	int i, j, err, blocked;
	bool queued = false;

	WARN_ON_ONCE(current->journal_info);
	h->h_sbi = sbi;
	h->h_parts = 0;
	for (i = 0; i < count; i++) {
		for (j = 0; j < h->h_parts; j++)
			if (h->h_part[j].journal->j_id == domains[i])
				break;
		if (j < h->h_parts)
			continue;
		memset(&h->h_part[j], 0, sizeof(h->h_part[j]));
		h->h_part[j].journal = sbi->s_journal[domains[i]];
		h->h_part[j].credits = credits;
		h->h_parts++;
	}
	rwsem_acquire_read(&sbi->s_handle_map, 0, 0, _THIS_IP_);
	for (;;) {
		err = lanefs_handle_join_all(h, queued ? waiters : NULL, &fresh, &blocked);
		if (err == -ENOBUFS) {
			fresh = lanefs_txn_new(sbi);
			continue;
		}
		if (err != -EAGAIN)
			break;
		if (!queued)
			lanefs_waiter_queue(h, waiters);
		queued = true;
		lanefs_handle_wait(h, blocked, &waiters[blocked]);
	}
	if (queued)
		lanefs_waiter_unqueue(h, waiters);
	lanefs_txn_free(fresh);
	if (err) {
		rwsem_release(&sbi->s_handle_map, _THIS_IP_);
		return err;
	}
	if (h->h_parts > 1)
		lanefs_handle_tie(h);
	h->h_nofs = memalloc_nofs_save();
	current->journal_info = h;
	trace_lanefs_handle_start(h, credits);
	return 0;
}

/**
 * lanefs_handle_stop() - close a handle
 * @h: the handle
 *
 * Gives back credits and blocks that were reserved and not used. Waits for nothing.
 */
void lanefs_handle_stop(struct lanefs_handle *h)
{
	int i;

	current->journal_info = NULL;
	memalloc_nofs_restore(h->h_nofs);
	for (i = 0; i < h->h_parts; i++) {
		WARN_ON_ONCE(h->h_part[i].used > h->h_part[i].credits);
		if (h->h_part[i].reserved)
			h->h_sbi->s_journal_ops->unreserve(h->h_part[i].journal,
							   h->h_part[i].reserved);
		lanefs_handle_leave(h, i);
	}
	rwsem_release(&h->h_sbi->s_handle_map, _THIS_IP_);
}

/**
 * lanefs_handle_part() - which part of the handle is this domain's
 * @h: the handle
 * @journal: of the domain; one that @h has not joined is a bug
 *
 * Return: its index in h_part.
 */
int lanefs_handle_part(const struct lanefs_handle *h, const struct lanefs_journal *journal)
{
	int i;

	for (i = 0; i < h->h_parts; i++)
		if (h->h_part[i].journal == journal)
			return i;
	BUG();
}

/* Whether what ties the domain's transactions up to `seq` is noted in them. */
static bool lanefs_ties_noted(struct lanefs_journal *journal, u64 seq)
{
	const struct lanefs_txn *txn;
	bool noted;

	spin_lock(&journal->j_lock);
	txn = journal->j_running;
	/* That of others is, as their handles have ended. */
	noted = !txn || txn->t_seq > seq || !txn->t_untied;
	spin_unlock(&journal->j_lock);
	return noted;
}

/*
 * The domain's transactions up to `seq` are tied to no others any more, but by handles that have
 * waited since before `ticket` was given out. What ties them already is noted in them afterwards.
 */
void lanefs_hold_ties(struct lanefs_journal *journal, u64 seq, u64 ticket)
{
	spin_lock(&journal->j_lock);
	if (seq > journal->j_held_seq) {
		journal->j_held_seq = seq;
		journal->j_held_ticket = ticket;
	}
	spin_unlock(&journal->j_lock);
	wait_event(journal->j_wait_drained, lanefs_ties_noted(journal, seq));
}

/* The running transaction takes no more handles; under j_lock. */
void lanefs_txn_lock(struct lanefs_txn *txn)
{
	lockdep_assert_held(&txn->t_journal->j_lock);
	txn->t_locked = true;
	lanefs_slots_close(txn->t_journal);
}

/* Waits until the handles of a locked transaction have ended. What they did is seen then. */
void lanefs_txn_drain(struct lanefs_txn *txn)
{
	struct lanefs_journal *journal = txn->t_journal;

	wait_event(journal->j_wait_drained, !READ_ONCE(txn->t_handles) && !lanefs_slots_busy(journal));
	/* The last one that was counted in the transaction ended under the lock. */
	spin_lock(&journal->j_lock);
	spin_unlock(&journal->j_lock);
}
