// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes into pages that are dirty already, without the inode's lock (if not ablate=iolock): the
 * lock of the page is the range's. Such a page has a block or a reservation (in a log a
 * reservation, or an unwritten block), it lies before the end of the file, and nothing but its
 * contents changes: the write does what a store to a mapping of the file may do at any time.
 * Whatever takes the page away, or writes it back, locks it, and what cleans it for that makes the
 * next write take the inode's lock again.
 */
#include <linux/pagemap.h>
#include <linux/uio.h>

#include "file/file.h"

/* The folio if it is one to be written to at once: locked, with a reference. */
static struct folio *lanefs_dirty_folio_at(const struct kiocb *iocb, size_t count)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	struct folio *folio = lanefs_get_folio(inode->i_mapping, iocb->ki_pos >> PAGE_SHIFT,
					       iocb->ki_flags & IOCB_NOWAIT ?
					       FGP_LOCK | FGP_NOWAIT : FGP_LOCK, 0);

	if (!folio)
		return NULL;
	/* A truncation moves the end before it locks the pages behind it. */
	if (folio_test_uptodate(folio) && folio_test_dirty(folio) && !folio_test_writeback(folio) &&
	    iocb->ki_pos + count <= i_size_read(inode))
		return folio;
	folio_unlock(folio);
	folio_put(folio);
	return NULL;
}

static bool lanefs_may_overwrite(const struct kiocb *iocb, const struct iov_iter *from)
{
	const struct inode *inode = file_inode(iocb->ki_filp);
	size_t count = iov_iter_count(from);

	/* Privileges (such as set-user-ID) are dropped under the inode's lock. */
	return !lanefs_ablated(LANEFS_SB(inode->i_sb), LANEFS_ABLATE_IOLOCK) && count &&
	       IS_NOSEC(inode) && !IS_IMMUTABLE(inode) && !(iocb->ki_flags & IOCB_APPEND) &&
	       offset_in_page(iocb->ki_pos) + count <= PAGE_SIZE &&
	       iocb->ki_pos + count <= i_size_read(inode);
}

/* Returns the bytes written; 0: nothing, take the inode's lock; or an error. */
ssize_t lanefs_overwrite(struct kiocb *iocb, struct iov_iter *from)
{
	struct folio *folio;
	ssize_t count;
	size_t copied;
	int err;

	if (!lanefs_may_overwrite(iocb, from))
		return 0;
	count = generic_write_checks(iocb, from);
	if (count <= 0)
		return count;
	err = kiocb_modified(iocb);
	if (err)
		return err;
	folio = lanefs_dirty_folio_at(iocb, count);
	if (!folio)
		return 0;
	/* With page faults off: the memory that is read may be a mapping of this very page. */
	copied = lanefs_copy_to_folio(folio, offset_in_page(iocb->ki_pos), count, from);
	flush_dcache_folio(folio);
	folio_unlock(folio);
	folio_put(folio);
	iocb->ki_pos += copied;
	return copied;
}
