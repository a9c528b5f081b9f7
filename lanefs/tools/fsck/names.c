// SPDX-License-Identifier: GPL-2.0-only
/* Stage 2: what directories name, how often, and whether the names of other domains are known. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"
#include "core/namehash.h"
#include "names.h"
#include "tools/common/die.h"

/* The inode is there, but the bitmap says that it is free. */
static bool is_lost_inode(struct check *c, u64 ino, u8 type)
{
	struct lanefs_dinode inode;

	return !get_bit(c->domain[lanefs_ino_domain(ino)].inode_bits, lanefs_ino_index(ino)) &&
	       read_inode(c, ino, &inode) && le64_to_cpu(inode.di_ino) == ino &&
	       type_of_mode(le16_to_cpu(inode.di_mode)) == type;
}

static void check_target(struct check *c, u64 dir, const struct entry *entry)
{
	struct record *record = find_record(c, entry->ino);

	if (!record || lanefs_ino_index(entry->ino) < LANEFS_FIRST_INDEX) {
		if (can_repair(&c->report, "directory %llu: a name (key %#llx) of inode %llu, which"
			     " none can have", dir, entry->key, entry->ino))
			edit_remove(c, dir, entry->key);
		return;
	}
	if (record->revived)
		return;
	if (!record->mode && is_lost_inode(c, entry->ino, entry->type)) {
		record->revived = c->revived = true;
		if (can_repair(&c->report, "inode %llu: it has a name, but is marked as free",
			     entry->ino))
			set_inode_bit(c, entry->ino, true);
		return;
	}
	if (!record->mode) {
		if (can_repair(&c->report, "directory %llu: a name (key %#llx) of inode %llu, which"
			     " is not in use", dir, entry->key, entry->ino))
			edit_remove(c, dir, entry->key);
		return;
	}
	if (type_of_mode(record->mode) != entry->type &&
	    can_repair(&c->report, "directory %llu: entry %#llx has type %u, but inode %llu has"
		     " type %u", dir, entry->key, entry->type, entry->ino,
		     type_of_mode(record->mode))) {
		edit_remove(c, dir, entry->key);
		edit_add(c, dir, entry->ino, type_of_mode(record->mode), entry->name, entry->size);
	}
	if (S_ISDIR(record->mode) && record->names) {
		if (can_repair(&c->report, "directory %llu: a second name (key %#llx) of directory"
			     " %llu", dir, entry->key, entry->ino))
			edit_remove(c, dir, entry->key);
		return;
	}
	record->names++;
	if (S_ISDIR(record->mode)) {
		record->named_in = dir;
		record->named_key = entry->key;
		find_record(c, dir)->subdirs++;
	}
	note_shadow(c, dir, entry);
}

static void on_entry(struct scan *scan, const struct entry *entry)
{
	if (is_span_directory(scan->walk.check, scan->walk.ino))
		note_remote(scan->walk.check, scan->walk.ino, entry);
	else
		check_target(scan->walk.check, scan->walk.ino, entry);
}

static void read_names(struct check *c, u64 ino, struct record *record)
{
	struct lanefs_dinode inode;
	struct scan scan = {
		.walk = { .check = c, .ino = ino, .inode = &inode, .quiet = true },
		.each = on_entry,
	};

	if (S_ISDIR(record->mode) && read_inode(c, ino, &inode))
		scan_directory(&scan);
}

static void set_links(struct check *c, u64 ino, u32 right)
{
	struct lanefs_dinode inode;

	if (!read_inode(c, ino, &inode))
		return;
	inode.di_nlink = cpu_to_le32(right);
	write_inode(c, ino, &inode);
}

static void set_parent(struct check *c, u64 ino, u64 right)
{
	struct lanefs_dinode inode;

	if (!read_inode(c, ino, &inode))
		return;
	inode.di_parent = cpu_to_le64(right);
	write_inode(c, ino, &inode);
}

static void check_links(struct check *c, u64 ino, const struct record *record)
{
	u64 right = S_ISDIR(record->mode) ? 2ull + record->subdirs : record->names;

	if (record->nlink != right &&
	    can_repair(&c->report, "inode %llu: it has %llu links, not %u", ino, right,
		     record->nlink))
		set_links(c, ino, (u32)right);
}

static void check_parent(struct check *c, u64 ino, const struct record *record, u64 right)
{
	if (record->parent != right &&
	    can_repair(&c->report, "inode %llu: its parent is %llu, not %llu", ino, right,
		     record->parent))
		set_parent(c, ino, right);
}

/* Without a name: deleted but not freed yet, or lost. */
static void check_unnamed(struct check *c, u64 ino, const struct record *record)
{
	if (record->nlink) {
		if (can_repair(&c->report, "inode %llu: no directory names it; it goes to"
			     " /lost+found", ino))
			connect_lost(c, ino, record->mode);
		return;
	}
	if (!record->orphan) {
		if (can_repair(&c->report, "inode %llu: it is deleted, but not freed", ino))
			remove_inode(c, ino);
		return;
	}
	c->orphans++;
	if (c->report.repair)
		remove_inode(c, ino);
}

static void check_named(struct check *c, u64 ino, const struct record *record)
{
	if (record->orphan && record->nlink && S_ISREG(record->mode)) {
		c->orphans++;
		if (c->report.repair && !end_shift(c, ino))
			cut_to_size(c, ino);
	} else if (record->orphan &&
		   can_repair(&c->report, "inode %llu: it is marked as an orphan, but is not one", ino)) {
		set_orphan_bit(c, ino, false);
	}
	check_links(c, ino, record);
	if (S_ISDIR(record->mode))
		check_parent(c, ino, record, record->named_in);
}

static void check_record(struct check *c, u64 ino, struct record *record)
{
	if (!record->mode) {
		if (get_bit(c->domain[lanefs_ino_domain(ino)].orphan_bits, lanefs_ino_index(ino)) &&
		    can_repair(&c->report, "inode %llu: it is marked as an orphan, but not in use",
			     ino))
			set_orphan_bit(c, ino, false);
		return;
	}
	if (is_span_directory(c, ino) || ino == LANEFS_ROOT_INO) {
		check_links(c, ino, record);
		if (ino == LANEFS_ROOT_INO)
			check_parent(c, ino, record, ino);
		if (record->orphan &&
		    can_repair(&c->report, "inode %llu: it is marked as an orphan", ino))
			set_orphan_bit(c, ino, false);
		return;
	}
	if (record->names)
		check_named(c, ino, record);
	else
		check_unnamed(c, ino, record);
}

enum { REACH_UNKNOWN, REACH_ON_PATH, REACH_DONE };

/*
 * Goes up from a directory. What ends at the root, or at a directory without a name (which is
 * dealt with as such), is done. What comes back to itself is a ring: one of its names is cut.
 */
static void check_reachable(struct check *c, u64 ino)
{
	u64 at = ino;

	for (;;) {
		struct record *record = find_record(c, at);

		if (at == LANEFS_ROOT_INO || record->reach == REACH_DONE || !record->names)
			break;
		if (record->reach == REACH_ON_PATH) {
			if (can_repair(&c->report, "inode %llu: the directory is its own ancestor", at))
				edit_remove(c, record->named_in, record->named_key);
			break;
		}
		record->reach = REACH_ON_PATH;
		at = record->named_in;
	}
	for (at = ino; find_record(c, at)->reach == REACH_ON_PATH; at = find_record(c, at)->named_in)
		find_record(c, at)->reach = REACH_DONE;
}

static void reach_directory(struct check *c, u64 ino, struct record *record)
{
	if (S_ISDIR(record->mode) && !is_span_directory(c, ino))
		check_reachable(c, ino);
}

static void for_each_record(struct check *c,
			    void (*each)(struct check *c, u64 ino, struct record *record))
{
	for (u32 d = 0; d < c->domains; d++)
		for (u64 index = 0; index < c->domain_inodes; index++)
			each(c, lanefs_ino(d, index), &c->domain[d].records[index]);
}

void check_names(struct check *c)
{
	for_each_record(c, read_names);
	if (c->revived) {
		/*
		 * What a revived directory names is not known yet, and a tree that is built now
		 * could take the blocks of a revived inode: the next round looks again.
		 */
		drop_edits(c);
		c->half_count = 0;
		return;
	}
	for_each_record(c, check_record);
	for_each_record(c, reach_directory);
	check_span(c);
	apply_edits(c);
}
