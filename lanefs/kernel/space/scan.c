// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bitmaps that are looked at and not kept: they are read in large requests, the next one while the
 * one before is looked at.
 */
#include <linux/cpumask.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "core/block.h"
#include "journal/blockio.h"
#include "space/space.h"

#define LANEFS_SCAN_BLOCKS	64	/* of a request */

struct lanefs_scan_chunk {
	struct lanefs_io io;
	u64 at;			/* of the bitmap's blocks */
	u32 count;
	struct page *page[LANEFS_SCAN_BLOCKS];
};

struct lanefs_scan {
	struct lanefs_domain *domain;
	const struct lanefs_bitmap *bitmap;
	u64 ahead, end;		/* what is read next, and to where: of the bitmap's blocks */
	struct lanefs_scan_chunk chunk[2];
};

/**
 * lanefs_zero_bits() - count the bits that are not set
 * @bits: little-endian, as on disk
 * @count: of the first so many
 *
 * It is fast for what is all zeros or ones, as most bitmaps are.
 *
 * Context: Any.
 * Return: their number.
 */
u32 lanefs_zero_bits(const void *bits, u32 count)
{
	u8 first = *(const u8 *)bits;
	u32 whole = count / BITS_PER_BYTE, set;

	set = memchr_inv(bits, first, whole) ? memweight(bits, whole) : whole * hweight8(first);
	if (count % BITS_PER_BYTE)
		set += hweight8(((const u8 *)bits)[whole] & ((1U << count % BITS_PER_BYTE) - 1));
	return count - set;
}

static void lanefs_scan_read(struct lanefs_scan *scan, struct lanefs_scan_chunk *chunk)
{
	u32 i;

	chunk->at = scan->ahead;
	chunk->count = min_t(u64, scan->end - scan->ahead, LANEFS_SCAN_BLOCKS);
	scan->ahead += chunk->count;
	if (!chunk->count)
		return;
	lanefs_io_begin(&chunk->io, scan->domain->d_sbi, REQ_OP_READ | REQ_META, chunk->count);
	for (i = 0; i < chunk->count; i++)
		lanefs_io_add(&chunk->io, scan->bitmap->first + chunk->at + i, chunk->page[i]);
	lanefs_io_submit(&chunk->io);
}

static int lanefs_scan_see(struct lanefs_scan *scan, struct lanefs_scan_chunk *chunk)
{
	const struct lanefs_bitmap *bitmap = scan->bitmap;
	struct lanefs_domain *domain = scan->domain;
	u64 block = bitmap->first + chunk->at;
	struct lanefs_sb *sbi = domain->d_sbi;
	const struct lanefs_header *header;
	int err = lanefs_io_wait(&chunk->io);
	u32 i;

	if (err)
		lanefs_io_error(sbi, "domain %u: blocks %llu to %llu cannot be read (%d)",
				domain->d_id, block, block + chunk->count - 1, err);
	for (i = 0; i < chunk->count && !err; i++, block++) {
		/* It may have been written meanwhile, as the read shows, or half. */
		if (bitmap->known && bitmap->known(domain, chunk->at + i))
			continue;
		header = page_address(chunk->page[i]);
		if (!lanefs_block_good(header, bitmap->magic, block, sbi->s_uuid) ||
		    le64_to_cpu(header->lh_owner) != domain->d_id) {
			lanefs_error(sbi, "domain %u: block %llu is damaged, or no bitmap of kind %#x",
				     domain->d_id, block, bitmap->magic);
			err = -EUCLEAN;
		} else {
			err = bitmap->see(domain, chunk->at + i, header + 1);
		}
	}
	return err;
}

static int lanefs_scan_all(struct lanefs_scan *scan)
{
	u32 pages[2], i;
	int err = 0;

	pages[0] = min_t(u64, scan->end - scan->ahead, LANEFS_SCAN_BLOCKS);
	pages[1] = min_t(u64, scan->end - scan->ahead - pages[0], LANEFS_SCAN_BLOCKS);
	for (i = 0; i < 2 && !err; i++)
		if (!lanefs_pages_alloc(scan->chunk[i].page, pages[i]))
			err = -ENOMEM;
	for (i = 0; i < 2 && !err; i++)
		lanefs_scan_read(scan, &scan->chunk[i]);
	for (i = 0; scan->chunk[i].count && !err; i = !i) {
		err = lanefs_scan_see(scan, &scan->chunk[i]);
		if (!err)
			lanefs_scan_read(scan, &scan->chunk[i]);
	}
	for (i = 0; i < 2; i++) {
		lanefs_io_wait(&scan->chunk[i].io);
		lanefs_pages_free(scan->chunk[i].page, pages[i]);
	}
	return err;
}

/**
 * lanefs_bitmap_scan() - read blocks of a bitmap, and look at each that is not known
 * @domain: the domain
 * @bitmap: the bitmap; its see() gets the bits
 * @from: the first block, of the bitmap's
 * @end: behind the last one
 *
 * What is not known has not changed since the mount, or since it was written in place.
 *
 * Context: Sleeps for reads and memory (GFP_KERNEL); holds no lock where it calls known() and
 * see().
 * Return: 0, -ENOMEM, the error of see(), or, after an abort, -EUCLEAN or that of a read.
 */
int lanefs_bitmap_scan(struct lanefs_domain *domain, const struct lanefs_bitmap *bitmap, u64 from,
		       u64 end)
{
	struct lanefs_scan *scan = kzalloc(sizeof(*scan), GFP_KERNEL);
	int err;

	if (!scan)
		return -ENOMEM;
	scan->domain = domain;
	scan->bitmap = bitmap;
	scan->ahead = from;
	scan->end = end;
	err = lanefs_scan_all(scan);
	kfree(scan);
	return err;
}

struct lanefs_domain_work {
	struct work_struct work;
	struct lanefs_domain *domain;
	int (*step)(struct lanefs_domain *domain);
	int err;
};

static void lanefs_domain_step(struct work_struct *work)
{
	struct lanefs_domain_work *part = container_of(work, struct lanefs_domain_work, work);

	part->err = part->step(part->domain);
}

/**
 * lanefs_each_domain() - have all domains take a step, as many at the same time as there are CPUs
 * @sbi: the file system
 * @step: what to do, in a worker
 *
 * Context: At the mount, or a remount; sleeps until all have done it.
 * Return: 0, -ENOMEM, or the error of the first domain that has one.
 */
int lanefs_each_domain(struct lanefs_sb *sbi, int (*step)(struct lanefs_domain *domain))
{
	struct lanefs_domain_work *parts;
	struct workqueue_struct *queue;
	int err = 0;
	u32 i;

	parts = kvcalloc(sbi->s_domains, sizeof(*parts), GFP_KERNEL);
	queue = alloc_workqueue("lanefs-scan/%s", WQ_UNBOUND, num_online_cpus(), sbi->s_vfs->s_id);
	if (!parts || !queue) {
		err = -ENOMEM;
		goto free;
	}
	for (i = 0; i < sbi->s_domains; i++) {
		parts[i].domain = sbi->s_domain[i];
		parts[i].step = step;
		INIT_WORK(&parts[i].work, lanefs_domain_step);
		queue_work(queue, &parts[i].work);
	}
	flush_workqueue(queue);
	for (i = 0; i < sbi->s_domains && !err; i++)
		err = parts[i].err;
free:
	if (queue)
		destroy_workqueue(queue);
	kvfree(parts);
	return err;
}
