// SPDX-License-Identifier: GPL-2.0-only
/* The inode table and its bitmaps. */
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "check.h"

struct record *find_record(struct check *c, u64 ino)
{
	u32 domain = lanefs_ino_domain(ino);

	if (ino >> LANEFS_DOMAIN_SHIFT >= c->domains || lanefs_ino_index(ino) >= c->domain_inodes)
		return NULL;
	return &c->domain[domain].records[lanefs_ino_index(ino)];
}

bool is_span_directory(const struct check *c, u64 ino)
{
	u64 index = lanefs_ino_index(ino);

	return index >= LANEFS_SPAN_INDEX &&
	       index < LANEFS_SPAN_INDEX + le32_to_cpu(c->super.sb_span_dirs);
}

bool get_bit(const u8 *bits, u64 n)
{
	return bits[n / 8] >> n % 8 & 1;
}

void set_bit(u8 *bits, u64 n, bool value)
{
	if (value)
		bits[n / 8] |= (u8)(1 << n % 8);
	else
		bits[n / 8] &= (u8)~(1 << n % 8);
}

static u64 table_block(const struct domain *domain, u64 index)
{
	return domain->layout.itable + index / LANEFS_INODES_PER_BLOCK;
}

static struct lanefs_dinode *slot_of(u8 *block, u64 index)
{
	return (void *)(block + LANEFS_INODE_SIZE * (1 + index % LANEFS_INODES_PER_BLOCK));
}

/* A block of the bitmap is lost: an inode is in use if its place in the table says so. */
static void guess_inode_bits(struct check *c, u32 d, u64 first)
{
	struct domain *domain = &c->domain[d];
	u8 block[LANEFS_BLOCK_SIZE];
	bool good = false;
	u64 read = 0;

	for (u64 n = first; n < first + LANEFS_BITMAP_BITS; n++) {
		bool used = n >= c->domain_inodes || n < LANEFS_FIRST_INDEX;

		if (!used && read != table_block(domain, n)) {
			read = table_block(domain, n);
			read_block(c, read, block);
			good = block_good(c, block, LANEFS_MAGIC_ITABLE, read, d);
		}
		if (!used)
			used = good && le64_to_cpu(slot_of(block, n)->di_ino) == lanefs_ino(d, n);
		set_bit(domain->inode_bits, n, used);
	}
}

static void load_bitmap(struct check *c, u32 d, bool orphans)
{
	struct domain *domain = &c->domain[d];
	u64 start = orphans ? domain->layout.obitmap : domain->layout.ibitmap;
	u32 magic = orphans ? LANEFS_MAGIC_OBITMAP : LANEFS_MAGIC_IBITMAP;
	u8 *bits = orphans ? domain->orphan_bits : domain->inode_bits;
	u8 block[LANEFS_BLOCK_SIZE];

	for (u64 i = 0; i < domain->layout.ibitmap_blocks; i++) {
		u8 *part = bits + i * LANEFS_BODY_SIZE;

		read_block(c, start + i, block);
		if (block_good(c, block, magic, start + i, d)) {
			memcpy(part, block + LANEFS_HEADER_SIZE, LANEFS_BODY_SIZE);
			continue;
		}
		if (orphans)
			memset(part, 0, LANEFS_BODY_SIZE);
		else
			guess_inode_bits(c, d, i * LANEFS_BITMAP_BITS);
		if (can_repair(&c->report, "domain %u: block %llu of the %s bitmap is damaged",
			     d, i, orphans ? "orphan" : "inode")) {
			set_header(c, block, magic, start + i, d);
			memcpy(block + LANEFS_HEADER_SIZE, part, LANEFS_BODY_SIZE);
			write_block(c, start + i, block);
		}
	}
}

void load_inode_bitmaps(struct check *c)
{
	for (u32 d = 0; d < c->domains; d++) {
		load_bitmap(c, d, false);
		load_bitmap(c, d, true);
	}
}

/* Damage is for check_bitmaps() to report. */
void load_block_bitmaps(struct check *c)
{
	u8 block[LANEFS_BLOCK_SIZE];

	for (u32 d = 0; d < c->domains; d++) {
		const struct lanefs_layout *layout = &c->domain[d].layout;

		for (u64 i = 0; i < layout->bbitmap_blocks; i++) {
			u8 *part = c->domain[d].block_bits + i * LANEFS_BODY_SIZE;

			read_block(c, layout->bbitmap + i, block);
			if (block_good(c, block, LANEFS_MAGIC_BBITMAP, layout->bbitmap + i, d))
				memcpy(part, block + LANEFS_HEADER_SIZE, LANEFS_BODY_SIZE);
			else
				memset(part, 0xff, LANEFS_BODY_SIZE);
		}
	}
}

static void write_bit(struct check *c, u64 ino, bool orphan, bool value)
{
	u64 index = lanefs_ino_index(ino), number;
	struct domain *domain = &c->domain[lanefs_ino_domain(ino)];
	u8 block[LANEFS_BLOCK_SIZE];

	number = (orphan ? domain->layout.obitmap : domain->layout.ibitmap) +
		 index / LANEFS_BITMAP_BITS;
	read_block(c, number, block);
	set_bit(block + LANEFS_HEADER_SIZE, index % LANEFS_BITMAP_BITS, value);
	write_block(c, number, block);
}

void set_inode_bit(struct check *c, u64 ino, bool value)
{
	set_bit(c->domain[lanefs_ino_domain(ino)].inode_bits, lanefs_ino_index(ino), value);
	write_bit(c, ino, false, value);
}

void set_orphan_bit(struct check *c, u64 ino, bool value)
{
	set_bit(c->domain[lanefs_ino_domain(ino)].orphan_bits, lanefs_ino_index(ino), value);
	write_bit(c, ino, true, value);
}

/* The block of the table that was read last stays: its inodes are asked for one after another. */
static bool read_table_block(struct check *c, u32 d, u64 number)
{
	if (c->table_block == number)
		return true;
	c->table_block = 0;
	read_block(c, number, c->table);
	if (!block_good(c, c->table, LANEFS_MAGIC_ITABLE, number, d))
		return false;
	c->table_block = number;
	return true;
}

bool read_inode(struct check *c, u64 ino, struct lanefs_dinode *inode)
{
	u32 d = lanefs_ino_domain(ino);

	if (!read_table_block(c, d, table_block(&c->domain[d], lanefs_ino_index(ino))))
		return false;
	*inode = *slot_of(c->table, lanefs_ino_index(ino));
	return true;
}

void write_inode(struct check *c, u64 ino, const struct lanefs_dinode *inode)
{
	u32 d = lanefs_ino_domain(ino);
	u64 number = table_block(&c->domain[d], lanefs_ino_index(ino));

	if (!read_table_block(c, d, number)) {
		memset(c->table, 0, sizeof(c->table));
		set_header(c, c->table, LANEFS_MAGIC_ITABLE, number, d);
		c->table_block = number;
	}
	*slot_of(c->table, lanefs_ino_index(ino)) = *inode;
	write_block(c, number, c->table);
}

void make_directory(struct check *c, struct lanefs_dinode *inode, u64 ino, unsigned int permissions,
		    u64 parent)
{
	u64 now = cpu_to_le64((u64)time(NULL));

	(void)c;
	memset(inode, 0, sizeof(*inode));
	inode->di_mode = cpu_to_le16((u16)(S_IFDIR | permissions));
	inode->di_nlink = cpu_to_le32(2);
	inode->di_atime = inode->di_mtime = inode->di_ctime = inode->di_btime = now;
	inode->di_ino = cpu_to_le64(ino);
	inode->di_parent = cpu_to_le64(parent);
}
