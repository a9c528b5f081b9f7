// SPDX-License-Identifier: GPL-2.0-only
/* FIEMAP: where a file's blocks are, without those that are its own only for the time being. */
#include <linux/fiemap.h>

#include "file/file.h"

/*
 * Preallocation of a growing file is freed on close, so it is reported as a hole. Blocks that
 * fallocate() allocated past the end are not. A file never has both.
 */
static int lanefs_fiemap_begin(struct inode *inode, loff_t pos, loff_t length, unsigned int flags,
			       struct iomap *iomap, struct iomap *srcmap)
{
	loff_t end = round_up(i_size_read(inode), LANEFS_BLOCK_SIZE);
	int err;

	err = lanefs_iomap_ops.iomap_begin(inode, pos, length, flags, iomap, srcmap);
	if (err || !READ_ONCE(LANEFS_I(inode)->li_preallocated))
		return err;
	if (iomap->offset < end) {
		iomap->length = min_t(u64, iomap->length, end - iomap->offset);
	} else {
		iomap->type = IOMAP_HOLE;
		iomap->addr = IOMAP_NULL_ADDR;
	}
	return 0;
}

static const struct iomap_ops lanefs_fiemap_ops = {
	.iomap_begin = lanefs_fiemap_begin,
};

int lanefs_fiemap(struct inode *inode, struct fiemap_extent_info *info, u64 start, u64 length)
{
	int err;

	inode_lock_shared(inode);
	err = iomap_fiemap(inode, info, start, length, &lanefs_fiemap_ops);
	inode_unlock_shared(inode);
	return err;
}
