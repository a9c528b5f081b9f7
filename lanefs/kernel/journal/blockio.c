// SPDX-License-Identifier: GPL-2.0-only
/* Reads or writes of many blocks that are under way together, and the wait for all of them. */
#include "journal/blockio.h"

/**
 * lanefs_pages_alloc() - allocate single pages
 * @pages: an array of NULL
 * @count: of its elements
 *
 * Context: May sleep for memory (GFP_KERNEL).
 * Return: whether there was memory for all; if not, lanefs_pages_free() is to free those before.
 */
bool lanefs_pages_alloc(struct page **pages, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		pages[i] = alloc_page(GFP_KERNEL);
		if (!pages[i])
			return false;
	}
	return true;
}

/**
 * lanefs_pages_free() - free pages of an array
 * @pages: the array, from the first NULL on without any
 * @count: of its elements
 *
 * Context: Any.
 */
void lanefs_pages_free(struct page **pages, u32 count)
{
	u32 i;

	for (i = 0; i < count && pages[i]; i++)
		put_page(pages[i]);
}

static void lanefs_io_put(struct lanefs_io *io)
{
	if (!atomic_dec_and_test(&io->pending))
		return;
	if (io->then)
		queue_work(system_unbound_wq, io->then);
	else
		complete(&io->done);
}

static void lanefs_io_bio_ended(struct bio *bio)
{
	struct lanefs_io *io = bio->bi_private;

	if (bio->bi_status)
		WRITE_ONCE(io->err, blk_status_to_errno(bio->bi_status));
	bio_put(bio);
	lanefs_io_put(io);
}

/**
 * lanefs_io_begin() - begin I/O of many blocks
 * @io: the I/O
 * @sbi: the file system
 * @opf: operation and flags of all its bios
 * @run: so many blocks are expected to follow each other
 *
 * Context: Any.
 */
void lanefs_io_begin(struct lanefs_io *io, struct lanefs_sb *sbi, blk_opf_t opf, u32 run)
{
	io->sbi = sbi;
	io->opf = opf;
	io->run = min_t(u32, run, BIO_MAX_VECS);
	io->bio = NULL;
	io->then = NULL;
	io->err = 0;
	io->under_way = true;
	atomic_set(&io->pending, 1);
	init_completion(&io->done);
}

static void lanefs_io_send(struct lanefs_io *io)
{
	if (!io->bio)
		return;
	atomic_inc(&io->pending);
	submit_bio(io->bio);
	io->bio = NULL;
}

/**
 * lanefs_io_add() - add a block to I/O
 * @io: the I/O, begun and not submitted
 * @block: its number
 * @page: its contents, until the I/O has ended
 *
 * A block that does not continue the bio begins another one, and that before it is sent.
 *
 * Context: May sleep for memory. It asks for it with GFP_KERNEL, so the caller says where reclaim
 * must not enter the file system (memalloc_nofs_save()).
 */
void lanefs_io_add(struct lanefs_io *io, u64 block, struct page *page)
{
	if (io->bio && (io->next != block || !bio_add_page(io->bio, page, LANEFS_BLOCK_SIZE, 0)))
		lanefs_io_send(io);
	if (!io->bio) {
		io->bio = bio_alloc(io->sbi->s_vfs->s_bdev, io->run, io->opf, GFP_KERNEL);
		io->bio->bi_iter.bi_sector = block << LANEFS_SECTOR_SHIFT;
		io->bio->bi_private = io;
		io->bio->bi_end_io = lanefs_io_bio_ended;
		__bio_add_page(io->bio, page, LANEFS_BLOCK_SIZE, 0);
	}
	io->next = block + 1;
}

/**
 * lanefs_io_submit() - send the rest of I/O, after its last block
 * @io: the I/O
 *
 * Context: May sleep.
 */
void lanefs_io_submit(struct lanefs_io *io)
{
	lanefs_io_send(io);
	lanefs_io_put(io);
}

/**
 * lanefs_io_wait() - wait until all of submitted I/O has ended
 * @io: the I/O, or zeros; what was waited for needs no wait
 *
 * Context: May sleep.
 * Return: 0 or the error of a bio.
 */
int lanefs_io_wait(struct lanefs_io *io)
{
	if (!io->under_way)
		return 0;
	wait_for_completion(&io->done);
	io->under_way = false;
	return io->err;
}
