// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cooperative work (Son et al., FAST'18, section 3.1.2): the task that has to do it announces it and
 * wakes some of the tasks that wait for its end. All of them take the next step from a counter.
 */
#include <linux/wait.h>

#include "journal/journal.h"

static void lanefs_coop_work(struct lanefs_coop *coop)
{
	unsigned int step;

	while ((step = atomic_inc_return(&coop->next) - 1) < coop->steps)
		coop->work(coop, step);
}

/* Does all steps, helped by tasks that wait on `queue` and call lanefs_coop_help() with `where`. */
void lanefs_coop_run(struct lanefs_journal *journal, struct lanefs_coop *coop,
		      struct lanefs_coop **where, wait_queue_head_t *queue)
{
	bool announced = coop->steps > 1 &&
			 READ_ONCE(journal->j_sbi->s_options.journal) != LANEFS_JOURNAL_SERIAL;

	atomic_set(&coop->next, 0);
	coop->helpers = 0;
	if (announced) {
		spin_lock(&journal->j_lock);
		WRITE_ONCE(*where, coop);
		spin_unlock(&journal->j_lock);
		wake_up_nr(queue, coop->steps - 1);
	}
	lanefs_coop_work(coop);
	if (!announced)
		return;
	spin_lock(&journal->j_lock);
	if (*where == coop)
		WRITE_ONCE(*where, NULL);
	spin_unlock(&journal->j_lock);
	wait_event(journal->j_wait_helped, !READ_ONCE(coop->helpers));
	/* The last helper left under the lock. */
	spin_lock(&journal->j_lock);
	spin_unlock(&journal->j_lock);
}

/* Helps with the work announced in `where`, if there is any left. */
void lanefs_coop_help(struct lanefs_journal *journal, struct lanefs_coop **where)
{
	struct lanefs_coop *coop;

	spin_lock(&journal->j_lock);
	coop = *where;
	if (coop)
		WRITE_ONCE(coop->helpers, coop->helpers + 1);
	spin_unlock(&journal->j_lock);
	if (!coop)
		return;
	lanefs_coop_work(coop);
	spin_lock(&journal->j_lock);
	if (*where == coop)
		WRITE_ONCE(*where, NULL);
	WRITE_ONCE(coop->helpers, coop->helpers - 1);
	wake_up(&journal->j_wait_helped);
	spin_unlock(&journal->j_lock);
}
