// SPDX-License-Identifier: GPL-2.0-only
#include "cut.h"

static bool needs_beyond(const struct lanefs_cut_node *node, const struct lanefs_cut_log *logs,
			 u32 domains)
{
	u32 d;

	for (d = 0; d < domains; d++)
		if (le64_to_cpu(node->needs[d]) > logs[d].end)
			return true;
	return false;
}

/* Lowers the end to before the first transaction that cannot stay. Returns whether it moved. */
static bool lower_end(struct lanefs_cut_log *log, const struct lanefs_cut_log *logs, u32 domains)
{
	u64 i;

	for (i = 0; i < log->count && log->nodes[i].seq <= log->end; i++) {
		if (needs_beyond(&log->nodes[i], logs, domains)) {
			log->end = log->nodes[i].seq - 1;
			return true;
		}
	}
	return false;
}

void lanefs_cut(struct lanefs_cut_log *logs, u32 domains)
{
	bool moved;
	u32 d;

	for (d = 0; d < domains; d++)
		logs[d].end = logs[d].base + logs[d].count;
	do {
		moved = false;
		for (d = 0; d < domains; d++)
			if (lower_end(&logs[d], logs, domains))
				moved = true;
	} while (moved);
}
