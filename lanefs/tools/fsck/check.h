/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_FSCK_CHECK_H
#define LANEFS_FSCK_CHECK_H

#include "core/shim.h"
#include "format.h"
#include "report.h"
#include "tools/common/image.h"

/*
 * A check goes in rounds. Each has three stages: inodes, their trees and the owners of their data;
 * names and links; bitmaps.
 * A stage needs the one before it to be clean. When repairing, a stage that found damage repairs it
 * in memory and the next round looks at everything again; the last round, which finds nothing,
 * is the proof. Nothing here shares code with the module but the format's description, hashes,
 * and the judgement whether a journal has lost what was committed.
 */

/* The record of an inode. Zero: not in use. */
struct record {
	u16 mode;		/* 0: not in use */
	bool orphan;
	bool bad_tree;
	u32 nlink;
	u32 names;		/* found in directories */
	u32 subdirs;
	u64 parent;		/* directory: di_parent */
	u64 named_in;		/* directory: where its name was found */
	u64 named_key;		/* and that name's key */
	u8 reach;		/* directory: see check_reachable() */
	bool revived;		/* marked as free, but a name was found in this round */
};

struct domain {
	struct lanefs_layout layout;
	struct record *records;	/* [sb_domain_inodes] */
	u8 *used;		/* a bit for each block: claimed by what was found */
	u8 *inode_bits;		/* the inode bitmap as it is on disk */
	u8 *orphan_bits;
	u8 *block_bits;		/* the block bitmap; what is damaged of it says: in use */
	u8 *lost_owners;	/* a bit for each block of owners: it was damaged */
	u64 search;		/* where to look for a free block */
};

struct check {
	struct image image;
	struct report report;
	unsigned int threads;	/* that read journals */
	struct lanefs_super_block super;
	u64 epoch;
	u32 domains;
	u64 domain_inodes;
	struct domain *domain;	/* [domains] */
	u64 table_block;	/* of the inode table: the one in `table`; 0: none */
	u8 table[LANEFS_BLOCK_SIZE];
	u64 owners_block;	/* the block of owners in `owners`; 0: none */
	u8 owners[LANEFS_BLOCK_SIZE];
	bool owners_changed;	/* `owners` is to be written */
	struct edit *edits;	/* of directories, made at the end of the stage */
	size_t edit_count, edit_room;
	struct new_map *maps;	/* of files, the same */
	size_t map_count, map_room;
	struct half *halves;	/* of names that span domains */
	size_t half_count, half_room;
	u64 lost_found;		/* its inode; 0: not looked for yet */
	u64 *lost_hashes;	/* of the names in it, ascending */
	size_t lost_count, lost_room;
	u64 orphans;		/* found in this round, as a crash leaves them */
	u64 lost_from;		/* first inode of the block of the table that was reported last */
	u64 files, directories, others;
	bool changed;		/* in this round */
	bool repaired_before;	/* in an earlier round */
	bool stuck;		/* in this round: a domain is full */
	bool revived;		/* in this round: an inode that stage 1 has not looked at */
};

/* No number of mounts or transactions reaches this. */
#define COUNTER_END (1ull << 62)

/* io.c: blocks and their headers */

/* A metadata block's state. A future epoch is reported and counts as good. */
bool block_good(struct check *c, const void *block, u32 magic, u64 number, u64 owner);
void read_block(struct check *c, u64 number, void *block);
/* As written by fsck: no transaction; with a new checksum. */
void write_block(struct check *c, u64 number, void *block);
/* A superblock, or a domain's: of the current epoch, as the module writes it. */
void write_super_block(struct check *c, u64 number, void *block);
void write_super_block_now(struct check *c, u64 number, void *block);
void set_header(struct check *c, void *block, u32 magic, u64 number, u64 owner);

/* The domain in whose data area the block lies, or NULL. */
struct domain *domain_of_block(struct check *c, u64 block);

/* super.c: NULL, or why there is nothing to check; the reason was reported. */
bool load_super(struct check *c);
/* Block 0 with this state and epoch, then its copies; each durable before the next. */
void write_super(struct check *c, u32 state, u64 epoch);
/* Block 0 says that there is damage, and that is durable before any other change. */
void mark_damaged(struct check *c);
/* All domains' journals, of the current epoch. */
void write_empty_journals(struct check *c);
void check_super_copies(struct check *c);

/* replay.c */
struct replayed {
	u64 transactions;
	u64 blocks;
	u64 discarded;
};

/* Domain superblocks and journals; brings what the journals hold into place (in memory). */
void replay_journals(struct check *c, struct replayed *replayed);

/* table.c: the inode table and its bitmaps */

/* A record by number; NULL if no inode can have it. */
struct record *find_record(struct check *c, u64 ino);
bool is_span_directory(const struct check *c, u64 ino);
void load_inode_bitmaps(struct check *c);
void load_block_bitmaps(struct check *c);
bool get_bit(const u8 *bits, u64 n);
void set_bit(u8 *bits, u64 n, bool value);
void set_inode_bit(struct check *c, u64 ino, bool value);
void set_orphan_bit(struct check *c, u64 ino, bool value);
/* False: its block of the table is damaged, so the inode is lost. */
bool read_inode(struct check *c, u64 ino, struct lanefs_dinode *inode);
void write_inode(struct check *c, u64 ino, const struct lanefs_dinode *inode);
void make_directory(struct check *c, struct lanefs_dinode *inode, u64 ino, unsigned int permissions,
		    u64 parent);

/* tree.c */
struct walk {
	struct check *check;
	u64 ino;
	const struct lanefs_dinode *inode;
	bool quiet;	/* damage was reported before */
	bool damaged;	/* result */
	u64 blocks;	/* result: good blocks of the tree */
	u64 leaves;	/* result */
	void *context;
	/* A good block of the tree; false leaves it out. */
	bool (*on_block)(struct walk *walk, u64 block);
	/* A good leaf, or the extents in the inode; keys from low to high. */
	void (*on_leaf)(struct walk *walk, const void *records, unsigned int count, u64 low,
			u64 high);
	void (*on_dirents)(struct walk *walk, const void *block, u64 low, u64 high);
};

void walk_tree(struct walk *walk);
__attribute__((format(printf, 2, 3))) void damaged(struct walk *walk, const char *format, ...);

/* dirents.c */
struct entry {
	u64 key;
	u64 ino;
	u8 type;
	u16 size;
	const u8 *name;		/* of a span directory's entry: with the 8 bytes before it */
};

/* Calls @each for each sound entry of a directory. Reports damage unless quiet. */
struct scan {
	struct walk walk;
	void *context;
	void (*each)(struct scan *scan, const struct entry *entry);
	/* within: */
	u64 last_key;
	u64 entries;
	u8 *same_hash;		/* names before with the same hash, each after its 2-byte size */
	size_t same_size;
};

void scan_directory(struct scan *scan);
u64 hash_key(const struct check *c, const void *name, size_t size);
u8 type_of_mode(u16 mode);

/* edit.c: changes to directories and maps, made together */
void edit_rebuild(struct check *c, u64 dir);
void edit_remove(struct check *c, u64 dir, u64 key);
void edit_add(struct check *c, u64 dir, u64 ino, u8 type, const void *name, size_t size);
/* Takes over the array. */
void edit_map(struct check *c, u64 ino, struct lanefs_extent *extents, size_t count);
void apply_edits(struct check *c);
void drop_edits(struct check *c);

/* build.c */
struct built {
	u16 level, count;
	u8 root[LANEFS_ROOT_SIZE];
	u64 blocks, leaves;
};

/* The blocks that a tree will have, and whether the inode's domain has as many that are free. */
u64 map_blocks(size_t count);
u64 directory_blocks(const struct entry *entries, size_t count);
bool has_room(struct check *c, u64 ino, u64 blocks);
/* As many entries as there is room for, with their final keys, in order. */
void build_map(struct check *c, u64 ino, const struct lanefs_extent *extents, size_t count,
	       struct built *built);
void build_directory(struct check *c, u64 ino, const struct entry *entries, size_t count,
		     struct built *built);

/* The stages. */
void check_inodes(struct check *c);
/* Takes an inode out of the table, with its bits. Its name and blocks are for the next round. */
void remove_inode(struct check *c, u64 ino);
void check_names(struct check *c);
void check_bitmaps(struct check *c);

#endif
