// SPDX-License-Identifier: GPL-2.0-only
/*
 * The blocks of a domain's journal, one after the other as they lie in it, with their checksums
 * judged. In parallel recovery they are read ahead in chunks, and each chunk's checksums are worked
 * out by whatever CPU is free.
 */
#include <linux/slab.h>

#include "core/block.h"
#include "core/jend.h"
#include "journal/recovery.h"

struct lanefs_read_chunk {
	struct lanefs_io io;
	struct work_struct check;
	u64 at;			/* block of the journal */
	u32 count;
	bool failed;		/* to be read once more, block by block */
	DECLARE_BITMAP(sealed, LANEFS_CHUNK_BLOCKS);
	struct page *page[LANEFS_CHUNK_BLOCKS];
};

struct lanefs_journal_reader {
	struct lanefs_recovery_part *part;
	u64 ahead;		/* block of the journal that the next chunk begins with */
	u32 size;		/* of the next chunk, in blocks */
	u32 chunks;
	u32 current_chunk, index;	/* the block that comes next */
	struct lanefs_read_chunk *chunk[LANEFS_CHUNKS];
};

/* A block of another epoch does not belong to the journal, whatever its checksum. */
static bool lanefs_journal_block_sealed(struct lanefs_sb *sbi, struct page *page)
{
	const struct lanefs_header *header = page_address(page);

	return le64_to_cpu(header->lh_epoch) == sbi->s_epoch && lanefs_block_sealed(header);
}

static void lanefs_chunk_check(struct lanefs_read_chunk *chunk)
{
	u32 i;

	for (i = 0; i < chunk->count; i++)
		__assign_bit(i, chunk->sealed,
			     lanefs_journal_block_sealed(chunk->io.sbi, chunk->page[i]));
}

static void lanefs_chunk_check_work(struct work_struct *work)
{
	struct lanefs_read_chunk *chunk = container_of(work, struct lanefs_read_chunk, check);

	if (!chunk->io.err)
		lanefs_chunk_check(chunk);
	complete(&chunk->io.done);
}

/* Reads the next chunk, up to the end of the journal. */
static void lanefs_chunk_read(struct lanefs_journal_reader *reader, struct lanefs_read_chunk *chunk)
{
	struct lanefs_journal *journal = reader->part->journal;
	u64 journal_blocks = journal->j_layout->journal_blocks;
	bool alone = reader->chunks == 1;
	u32 i;

	chunk->at = reader->ahead;
	chunk->count = min_t(u64, reader->size, journal_blocks - reader->ahead);
	reader->ahead += chunk->count;
	if (reader->ahead == journal_blocks)
		reader->ahead = 0;
	lanefs_io_begin(&chunk->io, journal->j_sbi, REQ_OP_READ | REQ_META, chunk->count);
	chunk->io.then = alone ? NULL : &chunk->check;
	for (i = 0; i < chunk->count; i++)
		lanefs_io_add(&chunk->io, journal->j_layout->journal + chunk->at + i, chunk->page[i]);
	lanefs_io_submit(&chunk->io);
}

static void lanefs_chunk_wait(struct lanefs_journal_reader *reader, struct lanefs_read_chunk *chunk)
{
	if (!chunk->io.under_way)
		return;
	chunk->failed = lanefs_io_wait(&chunk->io);
	if (!chunk->failed && !chunk->io.then)
		lanefs_chunk_check(chunk);
	atomic64_add(chunk->count, &reader->part->recovery->blocks);
}

/* An unreadable block may lie behind the end of the journal, where it does not matter. */
static int lanefs_chunk_read_again(struct lanefs_journal_reader *reader,
				   struct lanefs_read_chunk *chunk, u32 i)
{
	struct lanefs_journal *journal = reader->part->journal;
	int err = lanefs_bio_sync(journal->j_sbi, journal->j_layout->journal + chunk->at + i,
				  chunk->page[i], REQ_OP_READ);

	__assign_bit(i, chunk->sealed,
		     !err && lanefs_journal_block_sealed(journal->j_sbi, chunk->page[i]));
	return err;
}

/*
 * The next block and where it lies on the device; the one before it is gone. Its error, where it
 * cannot be read.
 */
int lanefs_journal_reader_next(struct lanefs_journal_reader *reader, const void **block, u64 *place,
			       bool *sealed)
{
	struct lanefs_read_chunk *chunk = reader->chunk[reader->current_chunk];
	int err = 0;

	if (reader->index == chunk->count) {
		reader->size = min(2 * reader->size, reader->part->recovery->chunk_blocks);
		lanefs_chunk_read(reader, chunk);
		reader->current_chunk = (reader->current_chunk + 1) % reader->chunks;
		chunk = reader->chunk[reader->current_chunk];
		reader->index = 0;
	}
	if (!reader->index)
		lanefs_chunk_wait(reader, chunk);
	if (chunk->failed)
		err = lanefs_chunk_read_again(reader, chunk, reader->index);
	*place = reader->part->journal->j_layout->journal + chunk->at + reader->index;
	*block = page_address(chunk->page[reader->index]);
	*sealed = test_bit(reader->index, chunk->sealed);
	reader->index++;
	return err;
}

/*
 * The block @at of the journal is the next one; often it was read just now. The first chunks are
 * small, as most journals are.
 */
void lanefs_journal_reader_seek(struct lanefs_journal_reader *reader, u64 at)
{
	struct lanefs_read_chunk *chunk = reader->chunk[reader->current_chunk];
	u32 i;

	if (reader->index && at >= chunk->at && at - chunk->at < chunk->count) {
		reader->index = at - chunk->at;
		return;
	}
	reader->ahead = at;
	reader->size = min_t(u32, LANEFS_JEND_LOOK, reader->part->recovery->chunk_blocks);
	reader->current_chunk = 0;
	reader->index = 0;
	for (i = 0; i < reader->chunks; i++) {
		lanefs_io_wait(&reader->chunk[i]->io);
		lanefs_chunk_read(reader, reader->chunk[i]);
	}
}

void lanefs_journal_reader_free(struct lanefs_journal_reader *reader)
{
	struct lanefs_read_chunk *chunk;
	u32 i;

	for (i = 0; i < reader->chunks; i++) {
		chunk = reader->chunk[i];
		if (!chunk)
			continue;
		lanefs_io_wait(&chunk->io);
		lanefs_pages_free(chunk->page, LANEFS_CHUNK_BLOCKS);
		kfree(chunk);
	}
	kfree(reader);
}

/* NULL: no memory. */
struct lanefs_journal_reader *lanefs_journal_reader_new(struct lanefs_recovery_part *part)
{
	struct lanefs_journal_reader *reader = kzalloc(sizeof(*reader), GFP_KERNEL);
	struct lanefs_read_chunk *chunk;

	if (!reader)
		return NULL;
	reader->part = part;
	while (reader->chunks < part->recovery->chunks) {
		chunk = kzalloc(sizeof(*chunk), GFP_KERNEL);
		reader->chunk[reader->chunks++] = chunk;
		if (!chunk || !lanefs_pages_alloc(chunk->page, part->recovery->chunk_blocks)) {
			lanefs_journal_reader_free(reader);
			return NULL;
		}
		INIT_WORK(&chunk->check, lanefs_chunk_check_work);
	}
	return reader;
}
