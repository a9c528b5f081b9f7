// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work that those who wait for its end take part in (Son et al., FAST'18, section 3.3): who has it
 * to do announces it, and wakes some of them. Each step is done by who comes first.
 */
#include <linux/wait.h>

#include "lanefs.h"

static void lanefs_joint_work(struct lanefs_joint *joint)
{
	unsigned int step;

	while ((step = atomic_inc_return(&joint->next) - 1) < joint->steps)
		joint->work(joint, step);
}

/* Does all steps, with those who wait on `queue` and call lanefs_joint_help() with `where`. */
void lanefs_joint_run(struct lanefs_domain *domain, struct lanefs_joint *joint,
		      struct lanefs_joint **where, wait_queue_head_t *queue)
{
	bool announced = joint->steps > 1 &&
			 READ_ONCE(domain->d_sbi->s_options.journal) != LANEFS_JOURNAL_SERIAL;

	atomic_set(&joint->next, 0);
	joint->helpers = 0;
	if (announced) {
		spin_lock(&domain->j_lock);
		WRITE_ONCE(*where, joint);
		spin_unlock(&domain->j_lock);
		wake_up_nr(queue, joint->steps - 1);
	}
	lanefs_joint_work(joint);
	if (!announced)
		return;
	spin_lock(&domain->j_lock);
	if (*where == joint)
		WRITE_ONCE(*where, NULL);
	spin_unlock(&domain->j_lock);
	wait_event(domain->j_wait_helped, !READ_ONCE(joint->helpers));
	/* The last of them went under the lock. */
	spin_lock(&domain->j_lock);
	spin_unlock(&domain->j_lock);
}

/* Helps with what is announced there, if there is still something to do. */
void lanefs_joint_help(struct lanefs_domain *domain, struct lanefs_joint **where)
{
	struct lanefs_joint *joint;

	spin_lock(&domain->j_lock);
	joint = *where;
	if (joint)
		WRITE_ONCE(joint->helpers, joint->helpers + 1);
	spin_unlock(&domain->j_lock);
	if (!joint)
		return;
	lanefs_joint_work(joint);
	spin_lock(&domain->j_lock);
	if (*where == joint)
		WRITE_ONCE(*where, NULL);
	WRITE_ONCE(joint->helpers, joint->helpers - 1);
	wake_up(&domain->j_wait_helped);
	spin_unlock(&domain->j_lock);
}
