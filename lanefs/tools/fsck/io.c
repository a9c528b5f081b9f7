// SPDX-License-Identifier: GPL-2.0-only
/* Reading, judging and writing single blocks. */
#include <errno.h>

#include "check.h"
#include "core/crc.h"
#include "tools/common/die.h"

void read_block(struct check *c, u64 number, void *block)
{
	int error = image_read(&c->image, number, block);

	if (error)
		die(FSCK_FAILED, "%s: cannot read block %llu: %s", c->image.device.path, number,
		    strerror(-error));
}

static u32 checksum(const void *block)
{
	u8 copy[LANEFS_BLOCK_SIZE];

	memcpy(copy, block, sizeof(copy));
	memset(copy + offsetof(struct lanefs_header, lh_crc), 0, 4);
	return lanefs_crc32c(~0u, copy, sizeof(copy));
}

static void seal(void *block, u64 epoch)
{
	struct lanefs_header *header = block;

	header->lh_seq = 0;
	header->lh_epoch = cpu_to_le64(epoch);
	header->lh_crc = cpu_to_le32(checksum(block));
}

bool block_good(struct check *c, const void *block, u32 magic, u64 number, u64 owner)
{
	const struct lanefs_header *header = block;

	if (le32_to_cpu(header->lh_magic) != magic || le64_to_cpu(header->lh_block) != number ||
	    le64_to_cpu(header->lh_owner) != owner ||
	    memcmp(header->lh_uuid, c->super.sb_header.lh_uuid, sizeof(header->lh_uuid)) ||
	    le32_to_cpu(header->lh_crc) != checksum(block))
		return false;
	if (le64_to_cpu(header->lh_epoch) > c->epoch &&
	    can_repair(&c->report, "block %llu: its epoch %llu is in the future", number, (u64)le64_to_cpu(header->lh_epoch))) {
		u8 copy[LANEFS_BLOCK_SIZE];

		memcpy(copy, block, sizeof(copy));
		write_block(c, number, copy);
	}
	return true;
}

static void put_block(struct check *c, u64 number, void *block, u64 epoch,
		      int (*put)(struct image *image, uint64_t number, const void *block))
{
	int error;

	seal(block, epoch);
	error = put(&c->image, number, block);
	if (error)
		die(FSCK_FAILED, "%s: block %llu: %s", c->image.device.path, number,
		    strerror(-error));
	c->changed = true;
}

void write_block(struct check *c, u64 number, void *block)
{
	put_block(c, number, block, 0, image_write);
}

void write_super_block(struct check *c, u64 number, void *block)
{
	put_block(c, number, block, c->epoch, image_write);
}

void write_super_block_now(struct check *c, u64 number, void *block)
{
	put_block(c, number, block, c->epoch, image_write_now);
}

void set_header(struct check *c, void *block, u32 magic, u64 number, u64 owner)
{
	struct lanefs_header *header = block;

	memset(header, 0, sizeof(*header));
	header->lh_magic = cpu_to_le32(magic);
	header->lh_block = cpu_to_le64(number);
	header->lh_owner = cpu_to_le64(owner);
	memcpy(header->lh_uuid, c->super.sb_header.lh_uuid, sizeof(header->lh_uuid));
}

struct domain *domain_of_block(struct check *c, u64 block)
{
	u64 start = le64_to_cpu(c->super.sb_domain_start);
	struct domain *domain;
	u64 number;

	if (block < start)
		return NULL;
	number = (block - start) / le64_to_cpu(c->super.sb_domain_blocks);
	if (number >= c->domains)
		return NULL;
	domain = &c->domain[number];
	return block >= domain->layout.data ? domain : NULL;
}
