// SPDX-License-Identifier: GPL-2.0-only
/* Superblock, domains, and single blocks. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <uuid/uuid.h>

#include "core/block.h"
#include "core/owner.h"
#include "dump.h"
#include "tools/common/die.h"

json_t *number_json(u64 number)
{
	return json_integer((json_int_t)number);
}

json_t *text_json(const void *text, size_t size)
{
	json_t *json = json_stringn(text, size);
	char *escaped;
	size_t used = 0;

	if (json)
		return json;
	escaped = allocate(size, 4);
	for (size_t i = 0; i < size; i++) {
		u8 byte = ((const u8 *)text)[i];

		if (byte >= ' ' && byte < 0x7f)
			escaped[used++] = (char)byte;
		else
			used += (size_t)sprintf(escaped + used, "\\x%02x", byte);
	}
	json = json_stringn(escaped, used);
	free(escaped);
	return json;
}

static const char *magic_name(u32 magic)
{
	static const struct {
		u32 magic;
		const char *name;
	} kinds[] = {
		{ LANEFS_MAGIC_SUPER, "superblock" },
		{ LANEFS_MAGIC_DOMAIN, "domain superblock" },
		{ LANEFS_MAGIC_IBITMAP, "inode bitmap" },
		{ LANEFS_MAGIC_OBITMAP, "orphan bitmap" },
		{ LANEFS_MAGIC_BBITMAP, "block bitmap" },
		{ LANEFS_MAGIC_ITABLE, "inode table" },
		{ LANEFS_MAGIC_OWNERS, "owners" },
		{ LANEFS_MAGIC_NODE, "node" },
		{ LANEFS_MAGIC_EXTENTS, "extents" },
		{ LANEFS_MAGIC_DIRENTS, "directory entries" },
		{ LANEFS_MAGIC_SYMLINK, "symlink target" },
		{ LANEFS_MAGIC_XATTR, "extended attributes" },
		{ LANEFS_MAGIC_JDESC, "journal descriptor" },
		{ LANEFS_MAGIC_JREVOKE, "journal revoke" },
		{ LANEFS_MAGIC_JCOMMIT, "journal commit" },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].magic == magic)
			return kinds[i].name;
	return "no metadata";
}

json_t *header_json(struct dump *dump, const void *block, u64 number)
{
	const struct lanefs_header *header = block;
	u32 magic = le32_to_cpu(header->lh_magic);

	return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:i, s:i, s:i}",
			 "kind", magic_name(magic),
			 "good", lanefs_block_good(block, magic, number,
						   dump->super.sb_header.lh_uuid),
			 "block", number_json(le64_to_cpu(header->lh_block)),
			 "owner", number_json(le64_to_cpu(header->lh_owner)),
			 "seq", number_json(le64_to_cpu(header->lh_seq)),
			 "epoch", number_json(le64_to_cpu(header->lh_epoch)),
			 "level", le16_to_cpu(header->lh_level),
			 "count", le16_to_cpu(header->lh_count),
			 "used", le16_to_cpu(header->lh_used));
}

/* The domain's block that the first entry of a block of owners is for; 0: it is none of any. */
static u64 first_owned(const struct dump *dump, u64 number)
{
	for (u32 d = 0; d < dump->domains; d++) {
		const struct lanefs_layout *layout = &dump->layout[d];

		if (number >= layout->owners && number - layout->owners < layout->owners_blocks)
			return layout->base + (number - layout->owners) * LANEFS_OWNERS;
	}
	return 0;
}

/* The blocks from entry @first on that follow each other in the file as on the device. */
static unsigned int run_length(const struct lanefs_owner *owners, unsigned int first)
{
	u64 ino = lanefs_owner_ino(&owners[first]);
	u32 logical = le32_to_cpu(owners[first].ow_logical);
	unsigned int n = 1;

	while (first + n < LANEFS_OWNERS && lanefs_owner_ino(&owners[first + n]) == ino &&
	       le32_to_cpu(owners[first + n].ow_logical) == logical + n)
		n++;
	return n;
}

/* Those that no file has had yet are left out. */
static json_t *owners_json(const struct lanefs_owner *owners, u64 first_block)
{
	json_t *list = json_array();

	for (unsigned int i = 0, length; i < LANEFS_OWNERS; i += length) {
		u64 ino = lanefs_owner_ino(&owners[i]);

		length = run_length(owners, i);
		if (ino)
			json_array_append_new(list, json_pack("{s:o, s:i, s:o, s:o}",
				"block", number_json(first_block + i), "length", (int)length,
				"ino", number_json(ino),
				"logical", number_json(le32_to_cpu(owners[i].ow_logical))));
	}
	return list;
}

json_t *block_json(struct dump *dump, u64 number)
{
	u8 block[LANEFS_BLOCK_SIZE];
	const struct lanefs_header *header = (const void *)block;
	json_t *json;
	u64 first;

	read_block(dump, number, block);
	json = header_json(dump, block, number);
	/* A copy in a journal contains the number of the block where it belongs. */
	first = first_owned(dump, le64_to_cpu(header->lh_block));
	if (le32_to_cpu(header->lh_magic) == LANEFS_MAGIC_OWNERS && first)
		json_object_set_new(json, "owners", owners_json(lanefs_owners_of(block), first));
	return json;
}

static const char *state_name(u32 state)
{
	switch (state) {
	case LANEFS_STATE_CLEAN:
		return "clean";
	case LANEFS_STATE_MOUNTED:
		return "mounted or crashed";
	case LANEFS_STATE_CLEAN | LANEFS_STATE_ERROR:
		return "clean, damage was found";
	case LANEFS_STATE_MOUNTED | LANEFS_STATE_ERROR:
		return "mounted or crashed, damage was found";
	default:
		return "unknown";
	}
}

json_t *super_json(struct dump *dump)
{
	const struct lanefs_super_block *super = &dump->super;
	char uuid[UUID_STR_LEN], created[32] = "";
	time_t seconds = (time_t)le64_to_cpu(super->sb_created);
	struct tm tm;

	uuid_unparse(super->sb_header.lh_uuid, uuid);
	if (gmtime_r(&seconds, &tm))
		strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_pack("{s:s, s:o, s:i, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:i, s:i, s:i,"
			 " s:s, s:o, s:s, s:o}",
			 "uuid", uuid,
			 "label", text_json(super->sb_label, strnlen((const char *)super->sb_label,
								     sizeof(super->sb_label))),
			 "version", (int)le32_to_cpu(super->sb_version),
			 "compat", number_json(le64_to_cpu(super->sb_compat)),
			 "ro_compat", number_json(le64_to_cpu(super->sb_ro_compat)),
			 "incompat", number_json(le64_to_cpu(super->sb_incompat)),
			 "alloc", super->sb_incompat & cpu_to_le64(LANEFS_INCOMPAT_LOG) ? "log" :
								   "extent",
			 "blocks", number_json(le64_to_cpu(super->sb_blocks)),
			 "domain_start", number_json(le64_to_cpu(super->sb_domain_start)),
			 "domain_blocks", number_json(le64_to_cpu(super->sb_domain_blocks)),
			 "domain_inodes", number_json(le64_to_cpu(super->sb_domain_inodes)),
			 "domains", (int)le32_to_cpu(super->sb_domains),
			 "journal_blocks", (int)le32_to_cpu(super->sb_journal_blocks),
			 "span_dirs", (int)le32_to_cpu(super->sb_span_dirs),
			 "state", state_name(le32_to_cpu(super->sb_state)),
			 "epoch", number_json(le64_to_cpu(super->sb_epoch)),
			 "created", created,
			 "header", header_json(dump, super, 0));
}

/* Clear bits among the first @bits of a bitmap. */
static u64 count_clear(struct dump *dump, u64 start, u64 bits)
{
	u8 block[LANEFS_BLOCK_SIZE];
	u64 clear = 0;

	for (u64 n = 0; n < bits; n++) {
		u64 bit = n % LANEFS_BITMAP_BITS;

		if (!bit)
			read_block(dump, start + n / LANEFS_BITMAP_BITS, block);
		clear += !(block[LANEFS_HEADER_SIZE + bit / 8] >> bit % 8 & 1);
	}
	return clear;
}

json_t *domain_json(struct dump *dump, u64 domain)
{
	const struct lanefs_layout *layout;
	struct lanefs_domain_block block;
	u64 inodes = le64_to_cpu(dump->super.sb_domain_inodes);

	if (domain >= dump->domains)
		die(1, "there is no domain %llu; the last one is %u", domain, dump->domains - 1);
	layout = &dump->layout[domain];
	read_block(dump, layout->base + 1, &block);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o*, s:o, s:o, s:o, s:o, s:o,"
			 " s:o, s:o}",
			 "domain", number_json(domain),
			 "base", number_json(layout->base),
			 "end", number_json(layout->end),
			 "journal", number_json(layout->journal),
			 "inode_bitmap", number_json(layout->ibitmap),
			 "orphan_bitmap", number_json(layout->obitmap),
			 "block_bitmap", number_json(layout->bbitmap),
			 "inode_table", number_json(layout->itable),
			 "owners", layout->owners_blocks ? number_json(layout->owners) : NULL,
			 "data", number_json(layout->data),
			 "free_blocks", number_json(count_clear(dump, layout->bbitmap,
								layout->end - layout->base)),
			 "free_inodes", number_json(count_clear(dump, layout->ibitmap, inodes)),
			 "orphans", number_json(inodes - count_clear(dump, layout->obitmap, inodes)),
			 "tail_seq", number_json(le64_to_cpu(block.db_tail_seq)),
			 "tail", number_json(le64_to_cpu(block.db_tail)),
			 "header", header_json(dump, &block, layout->base + 1));
}
