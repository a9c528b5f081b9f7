// SPDX-License-Identifier: GPL-2.0-only
#include "core/shim.h"
#include "format.h"
#include "geometry.h"
#include "tools/common/die.h"

#define MIB (1ull << 20)

/* Domain 0 begins at 1 MiB: clear of boot blocks, and aligned for any device. */
#define DOMAIN_START (MIB / LANEFS_BLOCK_SIZE)

/* Fewer domains than CPUs rather than domains smaller than this, unless asked for. */
#define COMFORTABLE_DOMAIN (32 * MIB)
#define DEFAULT_MOST_DOMAINS 64

/* A domain must have room for something besides its own metadata. */
#define SMALLEST_DATA (2 * MIB / LANEFS_BLOCK_SIZE)

/* In a log these are whole segments: for data, and for the live blocks that are moved for it. */
#define LEAST_SEGMENTS 4

/* Bytes of the device per inode. A device below SMALLEST_DEVICE may fill with files of one block. */
#define BYTES_PER_INODE 16384
#define SMALL_DEVICE (4096 * MIB)
#define SMALL_BYTES_PER_INODE 8192
#define SMALLEST_DEVICE (512 * MIB)
#define SMALLEST_BYTES_PER_INODE 4096

/* The journal takes a sixteenth of a domain, at most as much as SpanFS gave each (64 MiB). */
#define JOURNAL_SHARE 16
#define MOST_JOURNAL (64 * MIB / LANEFS_BLOCK_SIZE)

#define SPAN_DIRS LANEFS_MAX_SPAN_DIRS

static uint64_t choose_domains(uint64_t size, uint64_t wish, long cpus)
{
	uint64_t domains = cpus < 1 ? 1 : (uint64_t)cpus;

	if (wish > LANEFS_MAX_DOMAINS)
		die(1, "--domains takes a number up to %d; it was given %llu", LANEFS_MAX_DOMAINS,
		    (unsigned long long)wish);
	if (wish)
		return wish;
	if (domains > DEFAULT_MOST_DOMAINS)
		domains = DEFAULT_MOST_DOMAINS;
	if (domains > size / COMFORTABLE_DOMAIN)
		domains = size / COMFORTABLE_DOMAIN;
	return domains ? domains : 1;
}

static uint64_t choose_journal(uint64_t domain_blocks, uint64_t wish)
{
	uint64_t journal = wish ? wish : domain_blocks / JOURNAL_SHARE;

	if (wish && wish < LANEFS_MIN_JOURNAL)
		die(1, "--journal is too small: it takes at least %d KiB and was given %llu KiB",
		    LANEFS_MIN_JOURNAL * LANEFS_BLOCK_SIZE / 1024,
		    (unsigned long long)wish * LANEFS_BLOCK_SIZE / 1024);
	if (wish > UINT32_MAX)
		die(1, "--journal is too large: it takes less than %llu GiB",
		    ((unsigned long long)UINT32_MAX + 1) * LANEFS_BLOCK_SIZE >> 30);
	if (journal < LANEFS_MIN_JOURNAL)
		return LANEFS_MIN_JOURNAL;
	return !wish && journal > MOST_JOURNAL ? MOST_JOURNAL : journal;
}

static uint64_t bytes_per_inode(uint64_t size)
{
	if (size < SMALLEST_DEVICE)
		return SMALLEST_BYTES_PER_INODE;
	return size < SMALL_DEVICE ? SMALL_BYTES_PER_INODE : BYTES_PER_INODE;
}

static uint64_t choose_inodes(uint64_t size, uint64_t domain_blocks, uint64_t domains,
			      uint64_t wish)
{
	uint64_t inodes = wish ? lanefs_blocks_for(wish, domains) :
			  domain_blocks * LANEFS_BLOCK_SIZE / bytes_per_inode(size);
	const uint64_t least = LANEFS_FIRST_INDEX + LANEFS_INODES_PER_BLOCK;

	if (inodes < least)
		inodes = least;
	/* The inode table's last block is whole. */
	return lanefs_blocks_for(inodes, LANEFS_INODES_PER_BLOCK) * LANEFS_INODES_PER_BLOCK;
}

/* The blocks that a domain needs at least. */
static uint64_t smallest_domain(const struct lanefs_layout *layout, uint64_t incompat)
{
	uint64_t metadata = layout->data - layout->base;

	if (!(incompat & LANEFS_INCOMPAT_LOG))
		return metadata + SMALLEST_DATA;
	return (lanefs_blocks_for(metadata, LANEFS_SEGMENT_BLOCKS) + LEAST_SEGMENTS) *
	       LANEFS_SEGMENT_BLOCKS;
}

/* Cuts up @size bytes, and returns the blocks that it takes at least to cut them up so. */
static uint64_t lay_out(struct geometry *geometry, uint64_t size, const struct wishes *wishes,
			long cpus)
{
	uint64_t blocks = size / LANEFS_BLOCK_SIZE;
	uint64_t domains = choose_domains(size, wishes->domains, cpus);
	uint64_t domain_blocks = blocks > DOMAIN_START ? (blocks - DOMAIN_START) / domains : 0;
	struct lanefs_layout layout;

	*geometry = (struct geometry){
		.incompat = wishes->log ? LANEFS_INCOMPAT_LOG : 0,
		.blocks = blocks,
		.domain_start = DOMAIN_START,
		.domain_blocks = domain_blocks,
		.domain_inodes = choose_inodes(size, domain_blocks, domains, wishes->inodes),
		.domains = (uint32_t)domains,
		.journal_blocks = (uint32_t)choose_journal(domain_blocks, wishes->journal_blocks),
		.span_dirs = SPAN_DIRS,
	};
	lanefs_domain_layout(&layout, 0, DOMAIN_START, domain_blocks, geometry->domain_inodes,
			     geometry->journal_blocks, geometry->incompat);
	return DOMAIN_START + domains * smallest_domain(&layout, geometry->incompat);
}

/*
 * A size that is enough, from one that is not: what a larger file system takes for metadata is
 * added until nothing is missing. It is the least one unless the inodes per byte change on the way.
 */
static uint64_t enough_blocks(uint64_t blocks, const struct wishes *wishes, long cpus)
{
	struct geometry geometry;
	uint64_t needed = blocks;

	do {
		blocks = needed;
		needed = lay_out(&geometry, blocks * LANEFS_BLOCK_SIZE, wishes, cpus);
	} while (needed > blocks);
	return blocks;
}

void choose_geometry(struct geometry *geometry, uint64_t size, const struct wishes *wishes,
		     long cpus)
{
	uint64_t blocks = size / LANEFS_BLOCK_SIZE, enough;

	if (wishes->inodes > blocks * LANEFS_INODES_PER_BLOCK)
		die(1, "--inodes %llu do not fit into %llu MiB",
		    (unsigned long long)wishes->inodes, (unsigned long long)(size / MIB));
	if (lay_out(geometry, size, wishes, cpus) <= blocks)
		return;
	enough = enough_blocks(blocks, wishes, cpus);
	die(1, "%llu blocks (%llu KiB) are too small a size for %u domain%s: %llu blocks (%llu KiB)"
	    " are enough", (unsigned long long)blocks,
	    (unsigned long long)blocks * LANEFS_BLOCK_SIZE / 1024, geometry->domains,
	    geometry->domains == 1 ? "" : "s", (unsigned long long)enough,
	    (unsigned long long)enough * LANEFS_BLOCK_SIZE / 1024);
}
