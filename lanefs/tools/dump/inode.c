// SPDX-License-Identifier: GPL-2.0-only
/* An inode with its map, and a directory's entries. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "core/block.h"
#include "core/symlink.h"
#include "dump.h"
#include "tools/common/die.h"

void read_inode(struct dump *dump, u64 ino, struct lanefs_dinode *inode)
{
	u32 domain = lanefs_ino_domain(ino);
	u64 index = lanefs_ino_index(ino);
	u8 block[LANEFS_BLOCK_SIZE];

	if (ino >> LANEFS_DOMAIN_SHIFT >= dump->domains ||
	    index >= le64_to_cpu(dump->super.sb_domain_inodes))
		die(1, "there is no inode %llu; there are %u domains with %llu inodes each", ino,
		    dump->domains, (u64)le64_to_cpu(dump->super.sb_domain_inodes));
	read_block(dump, dump->layout[domain].itable + index / LANEFS_INODES_PER_BLOCK, block);
	memcpy(inode, block + LANEFS_INODE_SIZE * (1 + index % LANEFS_INODES_PER_BLOCK),
	       sizeof(*inode));
}

/* The leaves of an inode's tree, in order. A block is left out if it is not what it should be. */
struct leaves {
	struct dump *dump;
	u64 ino;
	u32 magic;
	json_t *tree;	/* its blocks */
	json_t *list;	/* of what the leaves hold */
	void (*show)(struct leaves *leaves, const void *block);
	u64 budget;	/* blocks, so that a tree that points to itself ends */
};

static void walk_index(struct leaves *leaves, const void *records, unsigned int count,
		       unsigned int level)
{
	const struct lanefs_index *index = records;
	u8 *block = allocate(1, LANEFS_BLOCK_SIZE);
	const struct lanefs_header *header = (const void *)block;

	for (unsigned int i = 0; i < count && leaves->budget; i++) {
		u64 number = le64_to_cpu(index[i].ix_block);
		u32 magic = level > 1 ? LANEFS_MAGIC_NODE : leaves->magic;
		bool good;

		if (number >= leaves->dump->image.blocks)
			continue;
		leaves->budget--;
		read_block(leaves->dump, number, block);
		good = lanefs_block_good(block, magic, number,
					 leaves->dump->super.sb_header.lh_uuid) &&
		       le64_to_cpu(header->lh_owner) == leaves->ino &&
		       le16_to_cpu(header->lh_level) == level - 1;
		json_array_append_new(leaves->tree, json_pack("{s:i, s:o, s:o, s:b}",
			"level", (int)level - 1, "key", number_json(le64_to_cpu(index[i].ix_key)),
			"block", number_json(number), "good", good));
		if (!good)
			continue;
		if (level > 1)
			walk_index(leaves, header + 1, le16_to_cpu(header->lh_count) >
				   LANEFS_NODE_RECORDS ? LANEFS_NODE_RECORDS :
				   le16_to_cpu(header->lh_count), level - 1);
		else
			leaves->show(leaves, block);
	}
	free(block);
}

static void show_extents(json_t *list, const struct lanefs_extent *extents, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		u32 length = le32_to_cpu(extents[i].ex_length);

		json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:b}",
			"logical", number_json(le32_to_cpu(extents[i].ex_logical)),
			"length", number_json(length & ~LANEFS_EXTENT_UNWRITTEN),
			"block", number_json(le64_to_cpu(extents[i].ex_block)),
			"unwritten", !!(length & LANEFS_EXTENT_UNWRITTEN)));
	}
}

static void show_extent_leaf(struct leaves *leaves, const void *block)
{
	const struct lanefs_header *header = block;
	unsigned int count = le16_to_cpu(header->lh_count);

	show_extents(leaves->list, (const void *)(header + 1),
		     count > LANEFS_NODE_RECORDS ? LANEFS_NODE_RECORDS : count);
}

static void show_entries(struct leaves *leaves, const void *data)
{
	const struct lanefs_header *header = data;
	const u8 *block = data;
	size_t used = le16_to_cpu(header->lh_used), at = LANEFS_HEADER_SIZE;
	u64 index = lanefs_ino_index(leaves->ino), dir;
	bool span = index >= LANEFS_SPAN_INDEX &&
		    index < LANEFS_SPAN_INDEX + le32_to_cpu(leaves->dump->super.sb_span_dirs);

	while (at + sizeof(struct lanefs_dirent) < used && used <= LANEFS_BLOCK_SIZE) {
		const struct lanefs_dirent *entry = (const void *)(block + at);
		size_t size = le16_to_cpu(entry->de_name_len), skip = span && size > 8 ? 8 : 0;
		json_t *json;

		if (at + LANEFS_DIRENT_SIZE(size) > used)
			return;
		json = json_pack("{s:o, s:o, s:i}",
				 "key", number_json(le64_to_cpu(entry->de_key)),
				 "ino", number_json(le64_to_cpu(entry->de_ino)),
				 "type", entry->de_type);
		if (skip) {
			memcpy(&dir, entry->de_name, 8);
			json_object_set_new(json, "dir", number_json(le64_to_cpu(dir)));
		}
		json_object_set_new(json, "name", text_json(entry->de_name + skip, size - skip));
		json_array_append_new(leaves->list, json);
		at += LANEFS_DIRENT_SIZE(size);
	}
}

/* An array of what the leaves hold; the tree's blocks go to @tree. */
static json_t *walk_leaves(struct dump *dump, u64 ino, const struct lanefs_dinode *inode,
			   json_t *tree)
{
	bool directory = S_ISDIR(le16_to_cpu(inode->di_mode));
	unsigned int level = le16_to_cpu(inode->di_level), count = le16_to_cpu(inode->di_count);
	struct leaves leaves = {
		.dump = dump, .ino = ino, .tree = tree, .list = json_array(),
		.magic = directory ? LANEFS_MAGIC_DIRENTS : LANEFS_MAGIC_EXTENTS,
		.show = directory ? show_entries : show_extent_leaf,
		.budget = le64_to_cpu(inode->di_blocks) + LANEFS_NODE_RECORDS,
	};

	if (count > LANEFS_ROOT_RECORDS || level > LANEFS_MAX_LEVEL)
		return leaves.list;
	if (level)
		walk_index(&leaves, inode->di_root, count, level);
	else if (!directory)
		show_extents(leaves.list, (const void *)inode->di_root, count);
	return leaves.list;
}

static json_t *time_json(__le64 seconds, __le32 ns)
{
	time_t t = (time_t)le64_to_cpu(seconds);
	char date[32], text[48];
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm))
		return json_string("out of range");
	snprintf(text, sizeof(text), "%s.%09uZ", date, le32_to_cpu(ns));
	return json_string(text);
}

static const char *type_name(u16 mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFCHR:
		return "character device";
	case S_IFBLK:
		return "block device";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	default:
		return mode ? "unknown" : "free";
	}
}

/* The names that chattr(1) has for them; a number for those that are none. */
static json_t *flags_json(u32 flags)
{
	static const struct {
		u32 flag;
		const char *name;
	} names[] = {
		{ LANEFS_FLAG_SYNC, "sync" },
		{ LANEFS_FLAG_IMMUTABLE, "immutable" },
		{ LANEFS_FLAG_APPEND, "append" },
		{ LANEFS_FLAG_NODUMP, "nodump" },
		{ LANEFS_FLAG_NOATIME, "noatime" },
		{ LANEFS_FLAG_DIRSYNC, "dirsync" },
	};
	json_t *json = json_array();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (flags & names[i].flag)
			json_array_append_new(json, json_string(names[i].name));
		flags &= ~names[i].flag;
	}
	if (flags)
		json_array_append_new(json, number_json(flags));
	return json;
}

static json_t *target_json(struct dump *dump, const struct lanefs_dinode *inode)
{
	const struct lanefs_index *index = (const void *)inode->di_root;
	u64 size = le64_to_cpu(inode->di_size);
	u8 block[LANEFS_BLOCK_SIZE], target[LANEFS_SYMLINK_MAX];

	if (!inode->di_level)
		return text_json(inode->di_root, size > LANEFS_ROOT_SIZE ? LANEFS_ROOT_SIZE : size);
	read_block(dump, le64_to_cpu(index->ix_block), block);
	if (size > sizeof(target))
		size = sizeof(target);
	lanefs_symlink_join(target, size, inode->di_root, block);
	return text_json(target, size);
}

json_t *inode_json(struct dump *dump, u64 ino)
{
	struct lanefs_dinode inode;
	char mode[8];
	json_t *json, *tree;

	read_inode(dump, ino, &inode);
	snprintf(mode, sizeof(mode), "%04o", le16_to_cpu(inode.di_mode) & 07777);
	json = json_pack("{s:o, s:i, s:o, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o}",
			 "ino", number_json(le64_to_cpu(inode.di_ino)),
			 "domain", (int)lanefs_ino_domain(ino),
			 "index", number_json(lanefs_ino_index(ino)),
			 "type", type_name(le16_to_cpu(inode.di_mode)),
			 "permissions", mode,
			 "uid", (int)le32_to_cpu(inode.di_uid),
			 "gid", (int)le32_to_cpu(inode.di_gid),
			 "links", number_json(le32_to_cpu(inode.di_nlink)),
			 "size", number_json(le64_to_cpu(inode.di_size)),
			 "blocks", number_json(le64_to_cpu(inode.di_blocks)),
			 "generation", number_json(le32_to_cpu(inode.di_generation)));
	json_object_set_new(json, "flags", flags_json(le32_to_cpu(inode.di_flags)));
	json_object_set_new(json, "rdev", number_json(le32_to_cpu(inode.di_rdev)));
	json_object_set_new(json, "parent", number_json(le64_to_cpu(inode.di_parent)));
	json_object_set_new(json, "xattr", number_json(le64_to_cpu(inode.di_xattr)));
	json_object_set_new(json, "atime", time_json(inode.di_atime, inode.di_atime_ns));
	json_object_set_new(json, "mtime", time_json(inode.di_mtime, inode.di_mtime_ns));
	json_object_set_new(json, "ctime", time_json(inode.di_ctime, inode.di_ctime_ns));
	json_object_set_new(json, "btime", time_json(inode.di_btime, inode.di_btime_ns));
	if (inode.di_shift_by)
		json_object_set_new(json, "shift", json_pack("{s:o, s:o}",
			"at", number_json(le32_to_cpu(inode.di_shift_at)),
			"by", number_json(le32_to_cpu(inode.di_shift_by))));
	json_object_set_new(json, "level", json_integer(le16_to_cpu(inode.di_level)));
	if (inode.di_xattr)
		json_object_set_new(json, "xattrs", xattrs_json(dump, &inode));
	if (S_ISLNK(le16_to_cpu(inode.di_mode)))
		json_object_set_new(json, "target", target_json(dump, &inode));
	if (!S_ISREG(le16_to_cpu(inode.di_mode)) && !S_ISDIR(le16_to_cpu(inode.di_mode)))
		return json;
	tree = json_array();
	json_object_set_new(json, "tree", tree);
	json_object_set_new(json, S_ISDIR(le16_to_cpu(inode.di_mode)) ? "entries" : "extents",
			    walk_leaves(dump, ino, &inode, tree));
	return json;
}

json_t *directory_json(struct dump *dump, u64 ino)
{
	struct lanefs_dinode inode;
	json_t *tree = json_array(), *list;

	read_inode(dump, ino, &inode);
	if (!S_ISDIR(le16_to_cpu(inode.di_mode)))
		die(1, "inode %llu is not a directory", ino);
	list = walk_leaves(dump, ino, &inode, tree);
	json_decref(tree);
	return list;
}
