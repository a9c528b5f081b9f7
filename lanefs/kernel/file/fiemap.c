// SPDX-License-Identifier: GPL-2.0-only
/* FIEMAP: where the blocks of a file, or of its attributes, are. */
#include <linux/fiemap.h>
#include <linux/pagemap.h>

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

	err = lanefs_walk_pause();
	if (!err)
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

/* All attributes lie in one block. */
static int lanefs_fiemap_xattr_begin(struct inode *inode, loff_t pos, loff_t length,
				     unsigned int flags, struct iomap *iomap, struct iomap *srcmap)
{
	u64 block = READ_ONCE(LANEFS_I(inode)->li_xattr);

	if (!block || pos >= LANEFS_BLOCK_SIZE)
		return -ENOENT;
	iomap->offset = 0;
	iomap->length = LANEFS_BLOCK_SIZE;
	iomap->type = IOMAP_MAPPED;
	iomap->addr = block << LANEFS_BLOCK_SHIFT;
	return 0;
}

static const struct iomap_ops lanefs_fiemap_xattr_ops = {
	.iomap_begin = lanefs_fiemap_xattr_begin,
};

/* Reads the map of these bytes into memory. */
static int lanefs_fiemap_cache(struct inode *inode, u64 start, u64 length)
{
	u64 at = start >> LANEFS_BLOCK_SHIFT, end = LANEFS_MAX_FILE_BLOCKS;
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_map map;
	int err = 0;

	if (length < end << LANEFS_BLOCK_SHIFT)
		end = min_t(u64, end, DIV_ROUND_UP_ULL(start + length, LANEFS_BLOCK_SIZE));
	for (; at < end && !err; at += map.length) {
		down_read(&li->li_tree_sem);
		err = lanefs_map_find(inode, at, &map);
		up_read(&li->li_tree_sem);
		err = err ?: lanefs_walk_pause();
	}
	return err;
}

int lanefs_fiemap(struct inode *inode, struct fiemap_extent_info *info, u64 start, u64 length)
{
	const struct iomap_ops *ops = &lanefs_fiemap_ops;
	int err = 0;

	if (info->fi_flags & FIEMAP_FLAG_XATTR)
		ops = &lanefs_fiemap_xattr_ops;
	inode_lock_shared(inode);
	if (info->fi_flags & FIEMAP_FLAG_CACHE)
		err = lanefs_fiemap_cache(inode, start, length);
	/* Blocks of a log are mapped when they are written; until then they would seem to be holes. */
	if (READ_ONCE(LANEFS_I(inode)->li_rewritten))
		filemap_fdatawait_keep_errors(inode->i_mapping);
	/* Those that iomap does not know, and would refuse. */
	info->fi_flags &= ~(FIEMAP_FLAG_XATTR | FIEMAP_FLAG_CACHE);
	if (!err)
		err = iomap_fiemap(inode, info, start, length, ops);
	inode_unlock_shared(inode);
	return err;
}
