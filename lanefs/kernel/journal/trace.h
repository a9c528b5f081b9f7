/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints: what journals and garbage collectors do. `fscale run --profile counts` counts them. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM lanefs

#if !defined(LANEFS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define LANEFS_TRACE_H

#include <linux/tracepoint.h>

#include "journal/journal.h"

TRACE_EVENT(lanefs_handle_start,
	TP_PROTO(const struct lanefs_handle *h, unsigned int credits),
	TP_ARGS(h, credits),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, domain)
		__field(int, parts)
		__field(unsigned int, credits)
		__field(bool, slot)
	),
	TP_fast_assign(
		__entry->dev = h->h_sbi->s_vfs->s_dev;
		__entry->domain = h->h_part[0].journal->j_id;
		__entry->parts = h->h_parts;
		__entry->credits = credits;
		__entry->slot = h->h_part[0].slot;
	),
	TP_printk("dev %d,%d first domain %u domains %d credits %u slot %d", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->domain, __entry->parts, __entry->credits,
		  __entry->slot)
);

TRACE_EVENT(lanefs_commit,
	TP_PROTO(const struct lanefs_txn *txn, int err),
	TP_ARGS(txn, err),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, domain)
		__field(u64, seq)
		__field(unsigned int, blocks)
		__field(u64, journal_blocks)
		__field(unsigned int, age)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->dev = txn->t_journal->j_sbi->s_vfs->s_dev;
		__entry->domain = txn->t_journal->j_id;
		__entry->seq = txn->t_seq;
		__entry->blocks = txn->t_nbufs;
		__entry->journal_blocks = txn->t_jblocks;
		__entry->age = jiffies_to_msecs(jiffies - txn->t_started);
		__entry->err = err;
	),
	TP_printk("dev %d,%d domain %u transaction %llu blocks %u journal blocks %llu age %u ms error %d",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->domain, __entry->seq,
		  __entry->blocks, __entry->journal_blocks, __entry->age, __entry->err)
);

TRACE_EVENT(lanefs_checkpoint,
	TP_PROTO(const struct lanefs_journal *journal, unsigned int blocks, int err),
	TP_ARGS(journal, blocks, err),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, domain)
		__field(u64, tail_seq)
		__field(unsigned int, blocks)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->dev = journal->j_sbi->s_vfs->s_dev;
		__entry->domain = journal->j_id;
		__entry->tail_seq = journal->j_tail_seq;
		__entry->blocks = blocks;
		__entry->err = err;
	),
	TP_printk("dev %d,%d domain %u journal begins at transaction %llu blocks in place %u error %d",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->domain, __entry->tail_seq,
		  __entry->blocks, __entry->err)
);

TRACE_EVENT(lanefs_collect,
	TP_PROTO(const struct lanefs_journal *journal, u64 segment, int live, u32 moved, int err),
	TP_ARGS(journal, segment, live, moved, err),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, domain)
		__field(u64, segment)
		__field(int, live)
		__field(u32, moved)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->dev = journal->j_sbi->s_vfs->s_dev;
		__entry->domain = journal->j_id;
		__entry->segment = segment;
		__entry->live = live;
		__entry->moved = moved;
		__entry->err = err;
	),
	TP_printk("dev %d,%d domain %u segment at %llu live %d moved %u error %d",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->domain, __entry->segment,
		  __entry->live, __entry->moved, __entry->err)
);

TRACE_EVENT(lanefs_stall,
	TP_PROTO(const struct lanefs_journal *journal, u64 ns),
	TP_ARGS(journal, ns),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, domain)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->dev = journal->j_sbi->s_vfs->s_dev;
		__entry->domain = journal->j_id;
		__entry->ns = ns;
	),
	TP_printk("dev %d,%d domain %u waited %llu ns for a segment", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->domain, __entry->ns)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH journal
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
