// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many blocks of a domain are free: neither in use, nor reserved by a handle, nor by
 * data that waits to be written (delalloc.c), nor being written and not in use yet (rewrite.c). Which
 * ones the allocator decides (alloc.c).
 *
 * As long as there is plenty, each CPU has a batch of them for itself (in its slot), so that CPUs
 * that share a domain do not share its count. Else all are in d_free, and the count is exact: what
 * fails for want of blocks has looked at all batches. What goes to or from a batch other than by a
 * take or a gift does so under d_batch_lock, so that nobody fails for blocks that are on their way.
 */
#include <linux/percpu.h>

#include "space/space.h"

#define LANEFS_FREE_BATCH	256	/* blocks that a CPU takes at a time; it keeps up to twice that */

/*
 * Blocks that data leaves to metadata, and metadata to I/O completions, which must not fail: a file
 * that is preallocated and as large as its domain may be written in every second block, in any
 * order, with 126 extents to a half-full leaf.
 */
static u64 lanefs_space_kept(const struct lanefs_domain *domain, enum lanefs_reserve purpose)
{
	u64 blocks = domain->d_layout.end - domain->d_layout.data;
	u64 keep = clamp_t(u64, blocks / 64, 16, 65536);

	return purpose == LANEFS_FOR_DATA ? 2 * keep + domain->d_kept :
	       purpose == LANEFS_FOR_METADATA ? keep : 0;
}

/**
 * lanefs_space_init() - prepare a domain's locks, lists and streams of blocks and segments
 * @domain: the domain, with d_slots
 *
 * Context: At the mount.
 */
void lanefs_space_init(struct lanefs_domain *domain)
{
	int cpu;

	spin_lock_init(&domain->d_batch_lock);
	init_waitqueue_head(&domain->d_wait_segments);
	mutex_init(&domain->d_victims_mutex);
	mutex_init(&domain->d_bitmaps_mutex);
	INIT_LIST_HEAD(&domain->d_loaded);
	spin_lock_init(&domain->d_segments_lock);
	spin_lock_init(&domain->d_stream.st_lock);
	domain->d_stream.st_collects = true;
	for_each_possible_cpu(cpu)
		spin_lock_init(&per_cpu_ptr(domain->d_slots, cpu)->s_stream.st_lock);
}

/*
 * From how many in d_free on CPUs may have batches: with what is left beside all of them any purpose
 * is served, so blocks of a batch can be had for all.
 */
void lanefs_space_start(struct lanefs_domain *domain)
{
	domain->d_plenty = lanefs_space_kept(domain, LANEFS_FOR_DATA) +
			   2ULL * LANEFS_FREE_BATCH * num_possible_cpus();
}

/**
 * lanefs_space_keep() - keep more blocks from new data, as a log that is full cannot be collected
 * @domain: the domain, after lanefs_space_start()
 * @blocks: so many more
 *
 * Context: At the mount, once.
 */
void lanefs_space_keep(struct lanefs_domain *domain, u64 blocks)
{
	domain->d_kept = blocks;
	domain->d_plenty += blocks;
}

static bool lanefs_space_plenty(const struct lanefs_domain *domain, s64 free)
{
	return free >= domain->d_plenty;
}

/* All that is free. */
static s64 lanefs_free_count(struct lanefs_domain *domain)
{
	s64 free;
	int cpu;

	spin_lock(&domain->d_batch_lock);
	free = atomic64_read(&domain->d_free);
	for_each_possible_cpu(cpu)
		free += atomic64_read(&per_cpu_ptr(domain->d_slots, cpu)->s_free);
	spin_unlock(&domain->d_batch_lock);
	return free;
}

/* The number of blocks that become free when the transactions that freed them are stable. */
s64 lanefs_space_pending(const struct lanefs_domain *domain)
{
	s64 pending = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		pending += READ_ONCE(per_cpu_ptr(domain->d_slots, cpu)->s_pending);
	return pending;
}

/* Has all that is free counted in d_free. */
static void lanefs_space_gather(struct lanefs_domain *domain)
{
	int cpu;

	spin_lock(&domain->d_batch_lock);
	for_each_possible_cpu(cpu)
		atomic64_add(atomic64_xchg(&per_cpu_ptr(domain->d_slots, cpu)->s_free, 0),
			     &domain->d_free);
	spin_unlock(&domain->d_batch_lock);
}

/**
 * lanefs_space_count() - count the blocks of a domain that are free or pending
 * @domain: the domain
 * @for_data: of them, those that data can have
 *
 * Pending ones are free when the transactions that freed them are stable.
 *
 * Context: Takes d_batch_lock.
 * Return: their number, as far as the free ones are counted (count.c).
 */
s64 lanefs_space_count(struct lanefs_domain *domain, s64 *for_data)
{
	/* First what becomes free, or it might be in neither; it may be in both for a moment. */
	s64 room = lanefs_space_pending(domain);

	room += lanefs_free_count(domain);
	room = min_t(s64, room, domain->d_layout.end - domain->d_layout.data);
	*for_data = max_t(s64, room - (s64)lanefs_space_kept(domain, LANEFS_FOR_DATA), 0);
	return max_t(s64, room, 0);
}

static u64 lanefs_data_room_all(struct lanefs_sb *sbi)
{
	u64 room = 0;
	s64 part;
	u32 i;

	for (i = 0; i < sbi->s_domains; i++) {
		lanefs_space_count(sbi->s_domain[i], &part);
		room += part;
	}
	return room;
}

/**
 * lanefs_data_fits() - tell whether data finds so many blocks in all domains together
 * @sbi: the file system
 * @blocks: how many
 *
 * Context: May wait until all is counted after a mount.
 * Return: whether it does, for the moment, with those that are freed and not stable; false also if
 * that wait fails.
 */
bool lanefs_data_fits(struct lanefs_sb *sbi, u64 blocks)
{
	return blocks <= lanefs_data_room_all(sbi) ||
	       (!lanefs_count_wait(sbi) && blocks <= lanefs_data_room_all(sbi));
}

/**
 * lanefs_has_room() - tell whether so many blocks are free
 * @domain: whose blocks
 * @count: how many
 * @purpose: as for lanefs_reserve()
 *
 * Context: May wait until more are counted.
 * Return: whether they are, for the moment.
 */
bool lanefs_has_room(struct lanefs_domain *domain, u64 count, enum lanefs_reserve purpose)
{
	s64 least = count + lanefs_space_kept(domain, purpose);
	s64 seen = lanefs_count_seen(domain);

	do {
		if (atomic64_read(&domain->d_free) >= least || lanefs_free_count(domain) >= least)
			return true;
	} while (lanefs_count_more(domain, &seen));
	return false;
}

/* From this CPU's batch. */
static bool lanefs_take_batched(struct lanefs_domain *domain, s64 count)
{
	atomic64_t *batch = &raw_cpu_ptr(domain->d_slots)->s_free;
	s64 free = atomic64_read(batch);

	if (!lanefs_space_plenty(domain, atomic64_read(&domain->d_free)))
		return false;
	do {
		if (free < count)
			return false;
	} while (!atomic64_try_cmpxchg(batch, &free, free - count));
	return true;
}

/* From d_free. */
static bool lanefs_take_counted(struct lanefs_domain *domain, s64 count, s64 least)
{
	s64 free = atomic64_read(&domain->d_free);

	/* Not to be taken even for a moment where it is too much: others would find too little. */
	do {
		if (free < least)
			return false;
	} while (!atomic64_try_cmpxchg(&domain->d_free, &free, free - count));
	return true;
}

/* Where there is plenty, this CPU's batch is one again. */
static void lanefs_batch_refill(struct lanefs_domain *domain)
{
	s64 free = atomic64_read(&domain->d_free);
	atomic64_t *batch;

	if (!lanefs_space_plenty(domain, free - LANEFS_FREE_BATCH))
		return;
	spin_lock(&domain->d_batch_lock);
	batch = &raw_cpu_ptr(domain->d_slots)->s_free;
	if (atomic64_read(batch) < LANEFS_FREE_BATCH &&
	    atomic64_try_cmpxchg(&domain->d_free, &free, free - LANEFS_FREE_BATCH))
		atomic64_add(LANEFS_FREE_BATCH, batch);
	spin_unlock(&domain->d_batch_lock);
}

/**
 * lanefs_take_free() - take blocks from those that are free
 * @domain: whose blocks
 * @count: how many
 * @purpose: as for lanefs_reserve()
 *
 * Context: May wait until more are counted.
 * Return: whether so many were free.
 */
bool lanefs_take_free(struct lanefs_domain *domain, u64 count, enum lanefs_reserve purpose)
{
	s64 least, seen;

	if (lanefs_take_batched(domain, count))
		return true;
	least = count + lanefs_space_kept(domain, purpose);
	seen = lanefs_count_seen(domain);
	do {
		if (lanefs_take_counted(domain, count, least)) {
			lanefs_batch_refill(domain);
			return true;
		}
		lanefs_space_gather(domain);
		if (lanefs_take_counted(domain, count, least))
			return true;
	} while (lanefs_count_more(domain, &seen));
	return false;
}

/**
 * lanefs_give_free() - count blocks as free
 * @domain: whose blocks
 * @count: how many
 *
 * Context: Any.
 */
void lanefs_give_free(struct lanefs_domain *domain, u64 count)
{
	atomic64_t *batch = &raw_cpu_ptr(domain->d_slots)->s_free;

	if (!count)
		return;
	if (!lanefs_space_plenty(domain, atomic64_read(&domain->d_free))) {
		atomic64_add(count, &domain->d_free);
	} else if (atomic64_add_return(count, batch) > 2 * LANEFS_FREE_BATCH) {
		spin_lock(&domain->d_batch_lock);
		atomic64_add(atomic64_xchg(batch, 0), &domain->d_free);
		spin_unlock(&domain->d_batch_lock);
	}
}

/* Freed, and to be used again when the transaction is stable; less than 0: it is. */
void lanefs_add_pending(struct lanefs_domain *domain, s64 count)
{
	this_cpu_add(domain->d_slots->s_pending, count);
}

/**
 * lanefs_add_delayed() - count blocks as reserved for delayed allocation
 * @domain: whose blocks
 * @count: how many, with those that extent maps may need; less than 0: they are not any more
 *
 * Context: Any.
 */
void lanefs_add_delayed(struct lanefs_domain *domain, s64 count)
{
	this_cpu_add(domain->d_slots->s_delayed, count);
}

static bool lanefs_any_delayed(const struct lanefs_domain *domain)
{
	s64 delayed = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		delayed += READ_ONCE(per_cpu_ptr(domain->d_slots, cpu)->s_delayed);
	return delayed;
}

/**
 * lanefs_reserve() - set free blocks aside for a handle
 * @h: the handle
 * @domain: whose blocks
 * @count: how many
 * @purpose: what for: some are kept from data, and fewer from metadata
 *
 * lanefs_handle_stop() gives back what is left of them.
 *
 * Context: In a handle of the domain. May wait until more are counted after a mount (count.c).
 * Return: 0 or -ENOSPC.
 */
int lanefs_reserve(struct lanefs_handle *h, struct lanefs_domain *domain, u64 count,
		   enum lanefs_reserve purpose)
{
	int part = lanefs_handle_part(h, domain->d_journal);

	if (!lanefs_take_free(domain, count, purpose))
		return -ENOSPC;
	h->h_part[part].reserved += count;
	return 0;
}

/**
 * lanefs_delayed_anywhere() - tell whether any domain has blocks reserved for delayed allocation
 * @sbi: the file system
 *
 * Context: Any; the counts of the CPUs are read one after the other, so the answer may be old.
 * Return: whether one has.
 */
bool lanefs_delayed_anywhere(const struct lanefs_sb *sbi)
{
	u32 i;

	for (i = 0; i < sbi->s_domains; i++)
		if (lanefs_any_delayed(sbi->s_domain[i]))
			return true;
	return false;
}

/**
 * lanefs_space_queue() - wait for the task that makes room under s_space_mutex
 * @domain: of the inode that is to get blocks
 *
 * Only where few blocks are free: else that task would find the room taken, and fail for want of
 * it.
 *
 * Context: Before blocks are reserved for data; outside of handles, with no page locked, as the
 * task has delayed data written.
 */
void lanefs_space_queue(struct lanefs_domain *domain)
{
	struct mutex *queue = &domain->d_sbi->s_space_mutex;

	if (lanefs_space_plenty(domain, atomic64_read(&domain->d_free)) || !mutex_is_locked(queue))
		return;
	mutex_lock(queue);
	mutex_unlock(queue);
}
