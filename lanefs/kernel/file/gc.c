// SPDX-License-Identifier: GPL-2.0-only
/*
 * Garbage collection of a log (ScaleLFS, FAST'25). Each CPU that shares a domain has a collector
 * with its own buffer, write stream and victim. With ablate=gc one collector serves all domains.
 *
 * A collector takes the segment with the fewest blocks in use, looks up their owners, and moves the
 * blocks that the owners' maps still have: it reads them into its buffer, writes them to its stream
 * and then, in one handle, maps the copies and frees the old blocks, if they are mapped as before.
 * No block of a victim is overwritten or allocated again until the collector is done or gives up, so
 * a block that is mapped as before has the content that was read. Unwritten blocks and metadata stay.
 *
 * The old block becomes free when the transaction is stable. A task that may still read it has its
 * page locked, so pages are locked while they are remapped.
 */
#include <linux/blkdev.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "core/owner.h"
#include "file/file.h"
#include "journal/blockio.h"
#include "journal/trace.h"
#include "space/collector.h"

#define LANEFS_MOVE_HANDLE	8	/* mapped in one handle */
#define LANEFS_COLLECT_INTERVAL	HZ	/* while few segments are free */

static int lanefs_gc_live_order(const void *a, const void *b)
{
	const struct lanefs_live *one = a, *other = b;

	if (one->ino != other->ino)
		return one->ino < other->ino ? -1 : 1;
	return one->logical < other->logical ? -1 : one->logical > other->logical;
}

/* With the tree locked. Blocks of a file that is being shifted stay: their owners may be behind. */
static bool lanefs_gc_live_mapped(struct inode *inode, const struct lanefs_live *live)
{
	struct lanefs_map map;

	lockdep_assert_held(&LANEFS_I(inode)->li_tree_sem);
	return !LANEFS_I(inode)->li_shift_by && !lanefs_map_find(inode, live->logical, &map) &&
	       map.block == live->block && !map.unwritten;
}

/* Chooses the places of the copies; returns how many can be made. */
static u32 lanefs_gc_move_place(struct lanefs_collector *collector, struct inode *inode,
			     struct lanefs_domain *domain, struct lanefs_live *live, u32 count)
{
	bool own = collector->co_domain == domain &&
		   !lanefs_ablated(domain->d_sbi, LANEFS_ABLATE_DWS);
	struct lanefs_stream *stream = own ? &collector->co_stream : &domain->d_stream;
	struct lanefs_inode *li = LANEFS_I(inode);
	u32 i;

	down_read(&li->li_tree_sem);
	for (i = 0; i < count; i++)
		live[i].copy = lanefs_gc_live_mapped(inode, &live[i]);
	up_read(&li->li_tree_sem);
	for (i = 0; i < count; i++) {
		if (!live[i].copy)
			continue;
		live[i].copy = 0;
		if (!lanefs_take_free(domain, 1, LANEFS_FOR_COMPLETION))
			break;
		if (!lanefs_stream_take(domain, stream, 0, &live[i].copy)) {
			lanefs_give_free(domain, 1);
			break;
		}
	}
	return i;
}

static int lanefs_gc_move_io(struct lanefs_collector *collector, struct lanefs_sb *sbi,
			  const struct lanefs_live *live, u32 count, bool write)
{
	struct blk_plug plug;
	struct lanefs_io io;
	u32 i;

	blk_start_plug(&plug);
	lanefs_io_begin(&io, sbi, write ? REQ_OP_WRITE : REQ_OP_READ, count);
	for (i = 0; i < count; i++)
		if (live[i].copy)
			lanefs_io_add(&io, write ? live[i].copy : live[i].block,
				      collector->co_pages[i]);
	lanefs_io_submit(&io);
	blk_finish_plug(&plug);
	return lanefs_io_wait(&io);
}

/* In one handle: maps the copies of blocks that are mapped as before; the others keep `copy`. */
static int lanefs_gc_move_map(struct lanefs_collector *collector, struct inode *inode,
			   struct lanefs_domain *domain, struct lanefs_live *live, u32 count)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	u32 domains[2] = { li->li_domain, domain->d_id }, i;
	struct lanefs_handle h;
	struct lanefs_map map;
	int err;

	err = lanefs_handle_start(&h, domain->d_sbi, LANEFS_CREDITS, domains, 2);
	if (err)
		return err;
	down_write(&li->li_tree_sem);
	for (i = 0; i < count && !err && lanefs_rewrite_more(&h); i++) {
		/* Where a block of the victim was taken it may be this one, with other contents. */
		if (!live[i].copy || !lanefs_gc_live_mapped(inode, &live[i]) ||
		    !lanefs_victim_whole(domain, &collector->co_victim))
			continue;
		map = (struct lanefs_map){
			.logical = live[i].logical, .block = live[i].copy, .length = 1,
		};
		err = lanefs_rewrite_map(&h, inode, domain, &map);
		if (err)
			continue;
		err = lanefs_free_blocks(&h, domain, live[i].block, 1, false);
		live[i].copy = 0;
		collector->co_moved++;
	}
	lanefs_inode_journal(&h, inode, true);
	up_write(&li->li_tree_sem);
	if (err && err != -ENOSPC)
		lanefs_abort(domain->d_sbi);
	lanefs_handle_stop(&h);
	return err;
}

/*
 * The same with the folios locked: a reader of a block locks its folio before it looks for the
 * block. Folios that were added to the cache only for this are dropped again.
 */
static int lanefs_gc_move_locked(struct lanefs_collector *collector, struct inode *inode,
			      struct lanefs_domain *domain, struct lanefs_live *live, u32 count)
{
	struct address_space *mapping = inode->i_mapping;
	struct folio *folios[LANEFS_MOVE_HANDLE] = {};
	int err = 0;
	u32 i;

	lanefs_count_cached(inode);
	for (i = 0; i < count && !err; i++) {
		if (!live[i].copy)
			continue;
		folios[i] = lanefs_get_folio(mapping, live[i].logical, FGP_LOCK | FGP_CREAT,
					     GFP_NOFS);
		err = folios[i] ? 0 : -ENOMEM;
	}
	if (!err)
		err = lanefs_gc_move_map(collector, inode, domain, live, count);
	for (i = 0; i < count; i++) {
		if (!folios[i])
			continue;
		if (!folio_test_uptodate(folios[i]) && !folio_test_dirty(folios[i]))
			lanefs_generic_error_remove(mapping, folios[i]);
		folio_unlock(folios[i]);
		folio_put(folios[i]);
	}
	return err;
}

/* Moves blocks of an inode. */
static int lanefs_gc_move(struct lanefs_collector *collector, struct inode *inode,
		       struct lanefs_domain *domain, struct lanefs_live *live, u32 count)
{
	u32 placed = lanefs_gc_move_place(collector, inode, domain, live, count), i, part;
	int err;

	/* From now on no fsync writes to the victim. */
	lanefs_writeout_wait(inode, 0, LLONG_MAX);
	err = lanefs_gc_move_io(collector, domain->d_sbi, live, placed, false);
	if (!err)
		err = lanefs_gc_move_io(collector, domain->d_sbi, live, placed, true);
	for (i = 0; i < placed && !err; i += part) {
		part = min_t(u32, placed - i, LANEFS_MOVE_HANDLE);
		err = lanefs_gc_move_locked(collector, inode, domain, live + i, part);
	}
	for (i = 0; i < placed; i++)
		if (live[i].copy)
			lanefs_give_blocks(domain, live[i].copy, 1);
	return err ?: placed < count ? -ENOSPC : 0;
}

/*
 * ablate=dpb: moves blocks of an inode through the page cache, as if they were overwritten with
 * their own content. The inode is locked, so that the end of the file stays where it is.
 */
static int lanefs_gc_move_cached(struct lanefs_collector *collector, struct inode *inode,
			      const struct lanefs_live *live, u32 count)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct address_space *mapping = inode->i_mapping;
	loff_t at;
	bool mapped;
	int err = 0;
	u32 i;

	/* Writers come first: dirty pages have reserved blocks. */
	if (!lanefs_has_room(lanefs_domain_of(inode), count, LANEFS_FOR_DATA))
		return -ENOSPC;
	for (i = 0; i < count && !err; i++) {
		at = (loff_t)live[i].logical << LANEFS_BLOCK_SHIFT;
		down_read(&li->li_tree_sem);
		mapped = lanefs_gc_live_mapped(inode, &live[i]);
		up_read(&li->li_tree_sem);
		if (!mapped || at >= i_size_read(inode))
			continue;
		err = lanefs_redirty_block(inode, at);
		if (!err)
			collector->co_moved++;
	}
	/* They are in the order of the file. */
	at = (loff_t)live[0].logical << LANEFS_BLOCK_SHIFT;
	return err ?: filemap_write_and_wait_range(mapping, at,
			(((loff_t)live[count - 1].logical + 1) << LANEFS_BLOCK_SHIFT) - 1);
}

/*
 * Moves blocks of a regular file, LANEFS_MOVE_BLOCKS at a time. The file's locks come first: their
 * holder may wait for user memory, which may wait for a file system that is being frozen.
 */
static int lanefs_gc_move_file(struct lanefs_collector *collector, struct inode *inode,
			    struct lanefs_domain *domain, struct lanefs_live *live, u32 count)
{
	bool cached = lanefs_ablated(domain->d_sbi, LANEFS_ABLATE_DPB);
	bool protect = lanefs_ablated(domain->d_sbi, LANEFS_ABLATE_SVP);
	struct lanefs_inode *li = LANEFS_I(inode);
	struct super_block *sb = inode->i_sb;
	int err = 0;
	u32 part;

	if (protect)
		down_write(&li->li_collect_sem);
	if (cached)
		inode_lock_shared(inode);
	if (!sb_start_intwrite_trylock(sb)) {
		err = -EAGAIN;
		goto unlock;
	}
	for (; count && !err; live += part, count -= part) {
		part = min_t(u32, count, LANEFS_MOVE_BLOCKS);
		err = cached ? lanefs_gc_move_cached(collector, inode, live, part) :
			       lanefs_gc_move(collector, inode, domain, live, part);
	}
	sb_end_intwrite(sb);
unlock:
	if (cached)
		inode_unlock_shared(inode);
	if (protect)
		up_write(&li->li_collect_sem);
	return err;
}

/* Moves all blocks of an inode that are in the victim; blocks without a known owner stay. */
static int lanefs_gc_move_inode(struct lanefs_collector *collector, struct lanefs_domain *domain,
			     struct lanefs_live *live, u32 count)
{
	struct super_block *sb = domain->d_sbi->s_vfs;
	struct inode *inode;
	int err = 0;

	inode = lanefs_iget_outside(sb, live->ino, LANEFS_GENERATION_ANY);
	if (IS_ERR(inode))
		return PTR_ERR(inode) == -ESTALE ? 0 : PTR_ERR(inode);
	if (S_ISREG(inode->i_mode))
		err = lanefs_gc_move_file(collector, inode, domain, live, count);
	/* Its eviction asks whether the file system is being frozen, too. */
	iput(inode);
	return err;
}

/* Lists the blocks of the victim that are in use, with their likely owners. -errno, or their number. */
static int lanefs_gc_live_list(struct lanefs_collector *collector, struct lanefs_domain *domain)
{
	u32 number = collector->co_victim.number, first = collector->co_victim.first;
	u64 at = (u64)number * LANEFS_BITMAP_BITS + first;
	DECLARE_BITMAP(used, LANEFS_OWNERS);
	const struct lanefs_owner *owners;
	struct lanefs_live *live;
	struct lanefs_buf *buf;
	int half, count = 0, err;
	u32 i;

	for (half = 0; half < LANEFS_SEGMENT_BLOCKS / LANEFS_OWNERS; half++) {
		err = lanefs_victim_used(domain, number, first + half * LANEFS_OWNERS,
					 LANEFS_OWNERS, used);
		if (err)
			return err;
		buf = lanefs_buf_read(domain->d_journal, domain->d_layout.owners +
				      div_u64(at, LANEFS_OWNERS) + half, LANEFS_MAGIC_OWNERS,
				      domain->d_id);
		if (IS_ERR(buf))
			return PTR_ERR(buf);
		/* A task that changes the block may exchange its page. */
		mutex_lock(&buf->b_mutex);
		owners = lanefs_owners_of(buf->b_data);
		for_each_set_bit(i, used, LANEFS_OWNERS) {
			live = &collector->co_live[count++];
			live->ino = lanefs_owner_ino(&owners[i]);
			live->logical = le32_to_cpu(owners[i].ow_logical);
			live->block = domain->d_layout.base + at + half * LANEFS_OWNERS + i;
		}
		mutex_unlock(&buf->b_mutex);
		lanefs_buf_put(buf);
	}
	sort(collector->co_live, count, sizeof(*collector->co_live), lanefs_gc_live_order, NULL);
	return count;
}

/* Moves all blocks out of the victim that can be moved. */
static int lanefs_gc_segment(struct lanefs_collector *collector, struct lanefs_domain *domain)
{
	const struct lanefs_victim *victim = &collector->co_victim;
	int count = lanefs_gc_live_list(collector, domain), i, run, err = 0;
	struct lanefs_live *live = collector->co_live;

	collector->co_moved = 0;
	for (i = 0; i < count && !err; i += run) {
		for (run = 1; i + run < count && live[i + run].ino == live[i].ino; run++)
			;
		err = lanefs_gc_move_inode(collector, domain, live + i, run);
		cond_resched();
	}
	atomic64_inc(&domain->d_victims);
	atomic64_add(collector->co_moved, &domain->d_moved);
	trace_lanefs_collect(domain->d_journal, domain->d_layout.base + victim->first +
			     (u64)victim->number * LANEFS_BITMAP_BITS, count, collector->co_moved, err);
	return count < 0 ? count : err;
}

/* Until enough segments are free, or there is nothing to gain. */
static void lanefs_gc_domain(struct lanefs_collector *collector, struct lanefs_domain *domain)
{
	struct lanefs_victim *victim = &collector->co_victim;
	int err = 0;

	atomic_inc(&domain->d_collecting);
	while (!err && lanefs_gc_allowed(domain->d_sbi) && lanefs_segments_low(domain, true) &&
	       lanefs_victim_take(domain, victim)) {
		err = lanefs_gc_segment(collector, domain);
		lanefs_victim_give(domain, victim);
		/* The freed blocks become free when the transaction is stable. */
		if (!err)
			err = lanefs_stabilise(domain->d_journal,
					       READ_ONCE(domain->d_journal->j_next_seq) - 1);
	}
	if (!atomic_dec_and_test(&domain->d_collecting) || !lanefs_segments_exhausted(domain))
		return;
	/* After an error there may be another victim. */
	if (err && err != -ENOSPC)
		return;
	/* The last collector found nothing, so waiting for segments is in vain. */
	WRITE_ONCE(domain->d_barren, true);
	wake_up_all(&domain->d_wait_segments);
}

static void lanefs_gc_work(struct work_struct *work)
{
	struct lanefs_collector *collector = container_of(to_delayed_work(work),
							  struct lanefs_collector, co_work);
	struct lanefs_sb *sbi = collector->co_domain->d_sbi;
	unsigned int nofs = memalloc_nofs_save();
	bool single = lanefs_ablated(sbi, LANEFS_ABLATE_GC), low = false;
	u32 i;

	WRITE_ONCE(collector->co_working, true);
	for (i = 0; i < sbi->s_domains; i++) {
		if (!single && sbi->s_domain[i] != collector->co_domain)
			continue;
		lanefs_gc_domain(collector, sbi->s_domain[i]);
		low |= lanefs_segments_low(sbi->s_domain[i], false);
	}
	memalloc_nofs_restore(nofs);
	WRITE_ONCE(collector->co_working, false);
	/* Writes and frees make new victims. */
	if (low && lanefs_gc_allowed(sbi))
		queue_delayed_work_on(collector->co_cpu, sbi->s_collect, &collector->co_work,
				      LANEFS_COLLECT_INTERVAL);
}

static struct lanefs_collector *lanefs_gc_new(struct lanefs_domain *domain, int cpu)
{
	struct lanefs_collector *collector = kvzalloc(sizeof(*collector), GFP_KERNEL);

	if (!collector)
		return NULL;
	collector->co_domain = domain;
	collector->co_cpu = cpu;
	spin_lock_init(&collector->co_stream.st_lock);
	collector->co_stream.st_collects = true;
	INIT_DELAYED_WORK(&collector->co_work, lanefs_gc_work);
	if (lanefs_pages_alloc(collector->co_pages, LANEFS_MOVE_BLOCKS))
		return collector;
	lanefs_pages_free(collector->co_pages, LANEFS_MOVE_BLOCKS);
	kvfree(collector);
	return NULL;
}

/**
 * lanefs_gc_start() - make a log's collectors for a domain, and keep segments for them
 * @domain: the domain, with its groups
 *
 * One for each CPU online whose lane the domain is, at least one. None without a log. After an
 * error lanefs_gc_stop() frees those that are there.
 *
 * Context: At the mount, for many domains at once.
 * Return: 0 or -ENOMEM.
 */
int lanefs_gc_start(struct lanefs_domain *domain)
{
	u32 domains = domain->d_sbi->s_domains;
	int cpu;

	if (!lanefs_is_log(domain->d_sbi->s_vfs))
		return 0;
	domain->d_collectors = kcalloc(num_possible_cpus(), sizeof(*domain->d_collectors),
				       GFP_KERNEL);
	if (!domain->d_collectors)
		return -ENOMEM;
	for_each_online_cpu(cpu) {
		if (cpu % domains != domain->d_id % num_online_cpus())
			continue;
		domain->d_collectors[domain->d_ncollectors] = lanefs_gc_new(domain, cpu);
		if (!domain->d_collectors[domain->d_ncollectors])
			return -ENOMEM;
		domain->d_ncollectors++;
	}
	if (!domain->d_ncollectors) {
		/* More lanes than CPUs, or CPUs with other numbers. */
		domain->d_collectors[0] = lanefs_gc_new(domain, WORK_CPU_UNBOUND);
		if (!domain->d_collectors[0])
			return -ENOMEM;
		domain->d_ncollectors = 1;
	}
	/* One each, where there are enough. */
	domain->d_segments_kept = min(domain->d_ncollectors, domain->d_log_segments / 8);
	lanefs_space_keep(domain, (u64)domain->d_segments_kept * LANEFS_SEGMENT_BLOCKS);
	return 0;
}

/**
 * lanefs_gc_stop() - free the collectors of a domain
 * @domain: the domain
 *
 * Context: When s_collect has been destroyed, so that none works.
 */
void lanefs_gc_stop(struct lanefs_domain *domain)
{
	u32 i;

	for (i = 0; i < domain->d_ncollectors; i++) {
		lanefs_pages_free(domain->d_collectors[i]->co_pages, LANEFS_MOVE_BLOCKS);
		kvfree(domain->d_collectors[i]);
	}
	kfree(domain->d_collectors);
}

/**
 * lanefs_gc_allow() - let collectors work, or wait until none does
 * @sbi: the file system
 * @allowed: whether they may
 *
 * Context: May sleep; for false the caller holds none of what a collector waits for: pages,
 * handles, the file's locks.
 */
void lanefs_gc_allow(struct lanefs_sb *sbi, bool allowed)
{
	struct lanefs_domain *domain;
	u32 i, j;

	WRITE_ONCE(sbi->s_collecting, allowed);
	for (i = 0; i < sbi->s_domains && !allowed; i++) {
		domain = sbi->s_domain[i];
		for (j = 0; j < domain->d_ncollectors; j++)
			cancel_delayed_work_sync(&domain->d_collectors[j]->co_work);
	}
}
