/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_DUMP_DUMP_H
#define LANEFS_DUMP_DUMP_H

#include <jansson.h>

#include "core/shim.h"
#include "format.h"
#include "tools/common/image.h"

struct dump {
	struct image image;
	struct lanefs_super_block super;
	struct lanefs_layout *layout;	/* [domains] */
	u32 domains;
};

/* Reads a block, or ends the program. */
void read_block(struct dump *dump, u64 number, void *block);

/* A block's header, and whether its checksum, place and file system are right. */
json_t *header_json(struct dump *dump, const void *block, u64 number);
/* Text that may be no UTF-8: other bytes as \xNN. */
json_t *text_json(const void *text, size_t size);
json_t *number_json(u64 number);

/* The output of each command. All end the program with a message if the object does not exist. */
json_t *super_json(struct dump *dump);
json_t *domain_json(struct dump *dump, u64 domain);
json_t *inode_json(struct dump *dump, u64 ino);
json_t *directory_json(struct dump *dump, u64 ino);
json_t *journal_json(struct dump *dump, u64 domain);
json_t *block_json(struct dump *dump, u64 number);

/* An inode's extended attributes: an array, empty if their block is not theirs. */
json_t *xattrs_json(struct dump *dump, const struct lanefs_dinode *inode);

/* For the tree of an inode. */
void read_inode(struct dump *dump, u64 ino, struct lanefs_dinode *inode);

/* As indented text; lists of plain objects one a line. */
void print_text(const json_t *json);

#endif
