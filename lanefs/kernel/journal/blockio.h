/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads or writes of many blocks that are under way together. */
#ifndef LANEFS_BLOCKIO_H
#define LANEFS_BLOCKIO_H

#include <linux/completion.h>

#include "journal/journal.h"

/* I/O of many blocks, in as few bios as their order allows. */
struct lanefs_io {
	struct lanefs_sb *sbi;
	blk_opf_t opf;
	struct bio *bio;
	u64 next;			/* block that would go into the same bio */
	u32 run;			/* room of a bio, in blocks */
	/* Called when all requests have ended; it must end with complete(&done). NULL: only that. */
	struct work_struct *then;
	atomic_t pending;
	struct completion done;
	bool under_way;
	int err;
};

bool lanefs_pages_alloc(struct page **pages, u32 count);
void lanefs_pages_free(struct page **pages, u32 count);
void lanefs_io_begin(struct lanefs_io *io, struct lanefs_sb *sbi, blk_opf_t opf, u32 run);
void lanefs_io_add(struct lanefs_io *io, u64 block, struct page *page);
void lanefs_io_submit(struct lanefs_io *io);
int lanefs_io_wait(struct lanefs_io *io);

#endif
