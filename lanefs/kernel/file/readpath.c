// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads of a cached page without a reference to it (not with ablate=readpath): where many read the
 * same page its reference count is the line that they wait for. The page is found under RCU, copied
 * to memory of this CPU, and looked for again. If it is still there, and no page has come into the
 * file's cache since, what was copied are the file's bytes; else the page may have been freed, and
 * have become somebody else's, and the page cache's own way is taken. Copied is twice, so this is
 * for pages that others read at the same time.
 *
 * A page that was freed and came back to the same place is told by li_cached: whatever puts a page
 * into the cache of a file counts there between that and its becoming up to date.
 */
#include <linux/pagemap.h>
#include <linux/percpu.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "file/file.h"

/* After two readers at once, for so long, an inode's pages are read without references. */
#define LANEFS_SHARED_FOR	(HZ / 10)
/* One read in so many of a CPU looks whether there are others. */
#define LANEFS_LOOK_EACH	16

/*
 * Copies memory that may not be there, and tells what could not be. copy_from_kernel_nofault() does
 * so word by word, which takes longer than waiting for a reference. Where user and kernel addresses
 * are read by the same instructions, what copies from programs does it at once.
 */
#ifdef CONFIG_X86_64
#define lanefs_copy_nofault(to, from, n)						\
	raw_copy_from_user(to, (const void __force __user *)(from), n)
#else
#define lanefs_copy_nofault(to, from, n) copy_from_kernel_nofault(to, from, n)
#endif

/* Allocated, as all modules together have 8 KiB of static ones for each CPU. */
static u8 __percpu *lanefs_bounce;

static DEFINE_PER_CPU(unsigned int, lanefs_reads);

/**
 * lanefs_readpath_init() - allocate a page for each CPU, for reads without references
 *
 * Context: When the module is loaded.
 * Return: 0 or -ENOMEM.
 */
int lanefs_readpath_init(void)
{
	lanefs_bounce = __alloc_percpu(PAGE_SIZE, SMP_CACHE_BYTES);
	return lanefs_bounce ? 0 : -ENOMEM;
}

/**
 * lanefs_readpath_exit() - free what lanefs_readpath_init() has allocated
 *
 * Context: When no file system is mounted.
 */
void lanefs_readpath_exit(void)
{
	free_percpu(lanefs_bounce);
}

/* Counts a page that is in the inode's cache, or enters it, before it becomes up to date. */
void lanefs_count_cached(struct inode *inode)
{
	smp_mb__before_atomic();
	atomic_inc(&LANEFS_I(inode)->li_cached);
	smp_mb__after_atomic();
}

/* The page as it is in the cache, without a reference. */
static struct folio *lanefs_folio_at(struct inode *inode, pgoff_t index)
{
	struct folio *folio = xa_load(&inode->i_mapping->i_pages, index);
	unsigned long flags;

	if (!folio || xa_is_value(folio))
		return NULL;
	/* It may be part of anything by now: what tests one flag might look whether that makes sense. */
	flags = READ_ONCE(lanefs_folio_flags(folio));
	/* Large folios and readahead marks are left to the page cache. */
	if ((flags & (BIT(PG_head) | BIT(PG_readahead))) || !(flags & BIT(PG_uptodate)))
		return NULL;
	smp_rmb();
	return folio;
}

/* Whether others have the page, too; then it is taken for one that many read. */
static bool lanefs_read_by_many(struct inode *inode, pgoff_t index)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct folio *folio;
	bool many;

	unsigned long now = jiffies, shared = READ_ONCE(li->li_shared);

	if (time_in_range(now, shared, shared + LANEFS_SHARED_FOR))
		return true;
	/* A look costs a tenth of a read. */
	if (this_cpu_inc_return(lanefs_reads) % LANEFS_LOOK_EACH)
		return false;
	rcu_read_lock();
	folio = lanefs_folio_at(inode, index);
	/* The cache has one, and each mapping; _mapcount begins with -1. */
	many = folio && folio_ref_count(folio) > 2 + atomic_read(&folio->_mapcount);
	rcu_read_unlock();
	if (many)
		WRITE_ONCE(li->li_shared, now);
	return many;
}

static size_t lanefs_read_page(struct inode *inode, loff_t pos, size_t count, struct iov_iter *to)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	size_t offset = offset_in_page(pos), copied = 0;
	int cached = atomic_read(&li->li_cached);
	struct folio *folio;
	u8 *bounce;

	bounce = get_cpu_ptr(lanefs_bounce);
	rcu_read_lock();
	smp_rmb();
	folio = lanefs_folio_at(inode, pos >> PAGE_SHIFT);
	/* It may be memory that is not there any more. */
	if (folio && !lanefs_copy_nofault(bounce, folio_address(folio) + offset, count)) {
		smp_rmb();
		if (lanefs_folio_at(inode, pos >> PAGE_SHIFT) != folio)
			folio = NULL;
		/* A page that has become up to date was counted before. */
		smp_rmb();
		if (atomic_read(&li->li_cached) != cached || pos + count > i_size_read(inode))
			folio = NULL;
	} else {
		folio = NULL;
	}
	rcu_read_unlock();
	if (folio) {
		pagefault_disable();
		copied = copy_to_iter(bounce, count, to);
		pagefault_enable();
	}
	put_cpu_ptr(lanefs_bounce);
	return copied;
}

/* Returns the bytes that were read; the page cache serves the rest. */
ssize_t lanefs_read_shared(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	size_t count = iov_iter_count(to);

	/* A splice before 6.5 allocates the memory that it is given, and nothing may sleep here. */
	if (lanefs_ablated(LANEFS_SB(inode->i_sb), LANEFS_ABLATE_READPATH) || !count ||
	    !user_backed_iter(to) ||
	    offset_in_page(iocb->ki_pos) + count > PAGE_SIZE ||
	    iocb->ki_pos + count > i_size_read(inode) ||
	    !lanefs_read_by_many(inode, iocb->ki_pos >> PAGE_SHIFT))
		return 0;
	count = lanefs_read_page(inode, iocb->ki_pos, count, to);
	iocb->ki_pos += count;
	if (count)
		file_accessed(iocb->ki_filp);
	return count;
}
