// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "core/block.h"
#include "tools/common/die.h"
#include "write.h"

#define RUN_BLOCKS 256	/* written at once */

struct writer {
	const struct device *device;
	const struct geometry *geometry;
	const struct identity *identity;
	struct timespec now;
};

static void put(const struct writer *w, const void *data, uint64_t block, uint64_t count)
{
	int error = device_write(w->device, data, count * LANEFS_BLOCK_SIZE,
				 block * LANEFS_BLOCK_SIZE);

	if (error)
		die(1, "%s: cannot write block %llu: %s", w->device->path, (unsigned long long)block,
		    strerror(-error));
}

static bool is_zero(const struct writer *w, void *run, uint64_t block, uint64_t count)
{
	const size_t size = count * LANEFS_BLOCK_SIZE;
	const u8 *bytes = run;

	return !device_read(w->device, run, size, block * LANEFS_BLOCK_SIZE) && !bytes[0] &&
	       !memcmp(bytes, bytes + 1, size - 1);
}

/* Writes zeros where there are none: what is sparse stays so. */
static void put_zeros(const struct writer *w, uint64_t block, uint64_t count)
{
	void *zeros = allocate(RUN_BLOCKS, LANEFS_BLOCK_SIZE);
	void *found = allocate(RUN_BLOCKS, LANEFS_BLOCK_SIZE);

	while (count) {
		uint64_t n = count < RUN_BLOCKS ? count : RUN_BLOCKS;

		if (!is_zero(w, found, block, n))
			put(w, zeros, block, n);
		block += n;
		count -= n;
	}
	free(zeros);
	free(found);
}

static void sync_all(const struct writer *w)
{
	int error = device_sync(w->device);

	if (error)
		die(1, "%s: cannot flush its write cache: %s", w->device->path, strerror(-error));
}

static void random_bytes(void *data, size_t size)
{
	if (getrandom(data, size, 0) != (ssize_t)size)
		die(1, "cannot get random numbers: %s", strerror(errno));
}

/* Fills in the header of a block that is about to be written at @block. */
static void prepare(const struct writer *w, void *data, u32 magic, uint64_t block, uint64_t owner)
{
	struct lanefs_header *header = data;

	header->lh_magic = cpu_to_le32(magic);
	header->lh_block = cpu_to_le64(block);
	header->lh_owner = cpu_to_le64(owner);
	memcpy(header->lh_uuid, w->identity->uuid, sizeof(header->lh_uuid));
	lanefs_block_seal(data);
}

/* The same, and writes it. */
static void finish(const struct writer *w, void *data, u32 magic, uint64_t block, uint64_t owner)
{
	prepare(w, data, magic, block, owner);
	put(w, data, block, 1);
}

/* Bit @bit of a bitmap in the block whose bits begin with bit @at. */
static uint64_t clamp_bit(uint64_t bit, uint64_t at)
{
	if (bit < at)
		return 0;
	return bit - at < LANEFS_BITMAP_BITS ? bit - at : LANEFS_BITMAP_BITS;
}

/* Bits from @from to @to - 1. */
static void set_bits(u8 *bits, uint64_t from, uint64_t to)
{
	for (; from < to && from % 8; from++)
		bits[from / 8] |= (u8)(1 << from % 8);
	if (from < to)
		memset(bits + from / 8, 0xff, (to - from) / 8);
	for (from += (to - from) / 8 * 8; from < to; from++)
		bits[from / 8] |= (u8)(1 << from % 8);
}

/* Bits from 0 to @low - 1 and from @high on are set. */
static void put_bitmap(const struct writer *w, u32 magic, u32 domain, uint64_t block,
		       uint64_t blocks, uint64_t low, uint64_t high)
{
	struct bitmap {
		struct lanefs_header header;
		u8 bits[LANEFS_BODY_SIZE];
	} *run = allocate(RUN_BLOCKS, sizeof(*run));

	for (uint64_t first = 0, n; first < blocks; first += n) {
		n = blocks - first < RUN_BLOCKS ? blocks - first : RUN_BLOCKS;
		memset(run, 0, n * sizeof(*run));
		for (uint64_t i = 0; i < n; i++) {
			uint64_t at = (first + i) * LANEFS_BITMAP_BITS;

			set_bits(run[i].bits, 0, clamp_bit(low, at));
			set_bits(run[i].bits, clamp_bit(high, at), LANEFS_BITMAP_BITS);
			prepare(w, &run[i], magic, block + first + i, domain);
		}
		put(w, run, block + first, n);
	}
	free(run);
}

static void make_directory(const struct writer *w, struct lanefs_dinode *inode, uint64_t ino,
			   unsigned int permissions, uint64_t parent)
{
	u32 generation;

	random_bytes(&generation, sizeof(generation));
	inode->di_mode = cpu_to_le16((u16)(S_IFDIR | permissions));
	inode->di_nlink = cpu_to_le32(2);
	inode->di_atime = inode->di_mtime = inode->di_ctime = inode->di_btime =
		cpu_to_le64((u64)w->now.tv_sec);
	inode->di_atime_ns = inode->di_mtime_ns = inode->di_ctime_ns = inode->di_btime_ns =
		cpu_to_le32((u32)w->now.tv_nsec);
	inode->di_generation = cpu_to_le32(generation);
	inode->di_ino = cpu_to_le64(ino);
	inode->di_parent = cpu_to_le64(parent);
}

/* The blocks of the inode table that hold the reserved inodes. */
static void put_inodes(const struct writer *w, u32 domain, uint64_t itable)
{
	const u64 blocks = lanefs_blocks_for(LANEFS_FIRST_INDEX, LANEFS_INODES_PER_BLOCK);
	u8 *data = allocate(1, LANEFS_BLOCK_SIZE);

	for (u64 i = 0; i < blocks; i++) {
		memset(data, 0, LANEFS_BLOCK_SIZE);
		for (u64 slot = 0; slot < LANEFS_INODES_PER_BLOCK; slot++) {
			u64 index = i * LANEFS_INODES_PER_BLOCK + slot;
			u64 ino = lanefs_ino(domain, index);
			void *inode = data + (1 + slot) * LANEFS_INODE_SIZE;

			if (ino == LANEFS_ROOT_INO)
				make_directory(w, inode, ino, 0755, ino);
			else if (index >= LANEFS_SPAN_INDEX &&
				 index < LANEFS_SPAN_INDEX + w->geometry->span_dirs)
				make_directory(w, inode, ino, 0, 0);
		}
		finish(w, data, LANEFS_MAGIC_ITABLE, itable + i, domain);
	}
	free(data);
}

/* In runs: there is a block of them for each MiB of the device. */
static void put_owners(const struct writer *w, u32 domain, uint64_t block, uint64_t count)
{
	u8 *run = allocate(RUN_BLOCKS, LANEFS_BLOCK_SIZE);

	while (count) {
		uint64_t n = count < RUN_BLOCKS ? count : RUN_BLOCKS;

		for (uint64_t i = 0; i < n; i++)
			prepare(w, run + i * LANEFS_BLOCK_SIZE, LANEFS_MAGIC_OWNERS, block + i,
				domain);
		put(w, run, block, n);
		block += n;
		count -= n;
	}
	free(run);
}

/*
 * A journal of an earlier file system of this uuid must not come to life, nor one that is there where
 * the writes to this device are repeated on another (dm-log-writes). So a block device is written
 * to even where zeros are read.
 */
static void clear_journal(const struct writer *w, uint64_t block, uint64_t count)
{
	uint64_t range[2] = { block * LANEFS_BLOCK_SIZE, count * LANEFS_BLOCK_SIZE };

	if (!w->device->block || ioctl(w->device->fd, BLKZEROOUT, range))
		put_zeros(w, block, count);
}

static void put_domain(const struct writer *w, u32 domain)
{
	const struct geometry *g = w->geometry;
	struct lanefs_domain_block *block = allocate(1, sizeof(*block));
	struct lanefs_layout layout;

	lanefs_domain_layout(&layout, domain, g->domain_start, g->domain_blocks,
			     g->domain_inodes, g->journal_blocks, g->incompat);
	clear_journal(w, layout.journal, layout.journal_blocks);
	block->db_header.lh_epoch = cpu_to_le64(1);
	block->db_domain = cpu_to_le32(domain);
	block->db_base = cpu_to_le64(layout.base);
	block->db_tail_seq = cpu_to_le64(1);
	finish(w, block, LANEFS_MAGIC_DOMAIN, layout.base + 1, domain);
	put_bitmap(w, LANEFS_MAGIC_IBITMAP, domain, layout.ibitmap, layout.ibitmap_blocks,
		   LANEFS_FIRST_INDEX, g->domain_inodes);
	put_bitmap(w, LANEFS_MAGIC_OBITMAP, domain, layout.obitmap, layout.ibitmap_blocks, 0,
		   UINT64_MAX);
	put_bitmap(w, LANEFS_MAGIC_BBITMAP, domain, layout.bbitmap, layout.bbitmap_blocks,
		   layout.data - layout.base, g->domain_blocks);
	put_inodes(w, domain, layout.itable);
	put_owners(w, domain, layout.owners, layout.owners_blocks);
	free(block);
}

static void put_supers(const struct writer *w)
{
	const struct geometry *g = w->geometry;
	struct lanefs_super_block *super = allocate(1, sizeof(*super));

	super->sb_version = cpu_to_le32(LANEFS_VERSION);
	super->sb_block_shift = cpu_to_le32(LANEFS_BLOCK_SHIFT);
	super->sb_ro_compat = cpu_to_le64(LANEFS_RO_COMPAT_SPAN);
	super->sb_incompat = cpu_to_le64(g->incompat);
	super->sb_blocks = cpu_to_le64(g->blocks);
	super->sb_domain_start = cpu_to_le64(g->domain_start);
	super->sb_domain_blocks = cpu_to_le64(g->domain_blocks);
	super->sb_domain_inodes = cpu_to_le64(g->domain_inodes);
	super->sb_domains = cpu_to_le32(g->domains);
	super->sb_journal_blocks = cpu_to_le32(g->journal_blocks);
	super->sb_span_dirs = cpu_to_le32(g->span_dirs);
	super->sb_state = cpu_to_le32(LANEFS_STATE_CLEAN);
	super->sb_epoch = cpu_to_le64(1);
	random_bytes(super->sb_hash_seed, sizeof(super->sb_hash_seed));
	memcpy(super->sb_label, w->identity->label, sizeof(super->sb_label));
	super->sb_created = cpu_to_le64((u64)w->now.tv_sec);
	for (u32 d = 0; d < g->domains; d++)
		finish(w, super, LANEFS_MAGIC_SUPER, g->domain_start + d * g->domain_blocks, 0);
	sync_all(w);
	finish(w, super, LANEFS_MAGIC_SUPER, 0, 0);
	sync_all(w);
	free(super);
}

void write_file_system(const struct device *device, const struct geometry *geometry,
		       const struct identity *identity)
{
	struct writer w = { .device = device, .geometry = geometry, .identity = identity };

	if (clock_gettime(CLOCK_REALTIME, &w.now))
		die(1, "cannot read the clock: %s", strerror(errno));
	put_zeros(&w, 0, geometry->domain_start);
	for (u32 d = 0; d < geometry->domains; d++)
		put_domain(&w, d);
	put_supers(&w);
}
