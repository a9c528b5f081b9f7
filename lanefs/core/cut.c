// SPDX-License-Identifier: GPL-2.0-only
#include "cut.h"

bool lanefs_cut_needs_no_more(const __le64 *needs, const __le64 *before, u32 domains)
{
	u32 d;

	for (d = 0; d < domains; d++)
		if (le64_to_cpu(needs[d]) > le64_to_cpu(before[d]))
			return false;
	return true;
}

static bool needs_beyond(const struct lanefs_cut_node *node, const struct lanefs_cut_log *logs,
			 u32 domains)
{
	u32 d;

	for (d = 0; d < domains; d++)
		if (le64_to_cpu(node->needs[d]) > logs[d].end)
			return true;
	return false;
}

/* A transaction stays with all before it only, so it needs what they need. */
static void add_up_needs(struct lanefs_cut_log *log, u32 domains)
{
	__le64 *needs, *before;
	u64 i;
	u32 d;

	for (i = 1; i < log->count; i++) {
		needs = log->nodes[i].needs;
		before = log->nodes[i - 1].needs;
		for (d = 0; d < domains; d++)
			if (le64_to_cpu(before[d]) > le64_to_cpu(needs[d]))
				needs[d] = before[d];
	}
}

/* Lowers the end to the last transaction that can stay. Returns whether it moved. */
static bool lower_end(struct lanefs_cut_log *log, const struct lanefs_cut_log *logs, u32 domains)
{
	u64 before = log->end;

	while (log->end > log->base &&
	       needs_beyond(&log->nodes[log->end - log->base - 1], logs, domains))
		log->end--;
	return log->end != before;
}

void lanefs_cut(struct lanefs_cut_log *logs, u32 domains)
{
	bool moved;
	u32 d;

	for (d = 0; d < domains; d++) {
		add_up_needs(&logs[d], domains);
		logs[d].end = logs[d].base + logs[d].count;
	}
	do {
		moved = false;
		for (d = 0; d < domains; d++)
			if (lower_end(&logs[d], logs, domains))
				moved = true;
	} while (moved);
}
