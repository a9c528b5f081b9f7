// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that may be throttled with what others wait for.
 *
 * Before Linux 6.18 the scheduler stops a task of a cgroup that has used up its CPU time (cpu.max)
 * wherever it sleeps or is preempted, also in a commit, until the group's next period. A module
 * cannot read a group's limit. So a group is held to be limited for some minutes after one of its
 * tasks waited long for a CPU while it waited for a commit, or made one.
 */
#include <linux/cgroup.h>
#include <linux/sched.h>

#include "journal/journal.h"

#define LANEFS_LONG_RUN_DELAY	(10 * NSEC_PER_MSEC)
#define LANEFS_LIMITED_FOR	(600 * HZ)

#ifdef LANEFS_THROTTLED_IN_KERNEL
/* Until when the group of the task is held to be limited; NULL: it is the root, which cannot be. */
static unsigned long *lanefs_group_limited(struct lanefs_sb *sbi)
{
	struct cgroup_subsys_state *css;
	unsigned long *limited = NULL;

	rcu_read_lock();
	css = task_css(current, cpu_cgrp_id);
	if (css->parent)
		limited = &sbi->s_limited[css->id % ARRAY_SIZE(sbi->s_limited)];
	rcu_read_unlock();
	return limited;
}

bool lanefs_may_be_throttled(struct lanefs_sb *sbi)
{
	unsigned long *limited = lanefs_group_limited(sbi);

	return limited && time_before(jiffies, READ_ONCE(*limited));
}

/* Nanoseconds for which the task has waited for a CPU since it began. */
u64 lanefs_run_delay(void)
{
	return current->sched_info.run_delay;
}

/* Notes the task's group if the task waited long for a CPU after it had waited for `before`. */
void lanefs_note_run_delay(struct lanefs_sb *sbi, u64 before)
{
	unsigned long *limited;

	if (lanefs_run_delay() - before < LANEFS_LONG_RUN_DELAY)
		return;
	limited = lanefs_group_limited(sbi);
	if (limited)
		WRITE_ONCE(*limited, jiffies + LANEFS_LIMITED_FOR);
}
#endif
