/* SPDX-License-Identifier: GPL-2.0-only */
/* The trees of inodes: B+ trees of directory entries and of extents. */
#ifndef LANEFS_TREE_H
#define LANEFS_TREE_H

#include "space/space.h"

/* tree.c */
struct lanefs_path {
	int p_level;			/* of the root; p_buf[0] is the leaf */
	struct lanefs_buf *p_buf[LANEFS_MAX_LEVEL];
	int p_slot[LANEFS_MAX_LEVEL + 1];
	u64 p_first;			/* lowest key that the leaf covers; 0: there is none before it */
	u64 p_next;			/* lowest key of the next leaf; U64_MAX: there is none */
};

int lanefs_tree_find(struct inode *inode, u64 key, struct lanefs_path *path);
int lanefs_tree_find_room(struct lanefs_handle *h, struct inode *inode, u64 key, unsigned int size,
			  struct lanefs_path *path);
int lanefs_tree_drop_leaf(struct lanefs_handle *h, struct inode *inode, struct lanefs_path *path);
void lanefs_path_put(struct lanefs_path *path);
bool lanefs_tree_cached(struct inode *inode, u64 key);
u64 lanefs_tree_blocks_needed(const struct inode *inode);
unsigned int lanefs_tree_credits(const struct inode *inode);
u64 lanefs_tree_room(const struct inode *inode);
typedef u64 lanefs_rekey_fn(u64 key, u64 at, u64 by);
void lanefs_tree_rekey_leaf(struct lanefs_handle *h, struct inode *inode,
			    const struct lanefs_path *path, lanefs_rekey_fn *rekey, u64 at, u64 by);

/* extents.c */
struct lanefs_map {
	u64 logical;
	u64 block;	/* 0: hole */
	u64 length;
	bool unwritten;
	bool delayed;	/* a hole with reserved blocks (lanefs_delalloc_clip()) */
	bool fresh;	/* just now */
};

int lanefs_map_find(struct inode *inode, u64 logical, struct lanefs_map *map);
int lanefs_map_last(struct inode *inode, struct lanefs_map *map);
int lanefs_map_insert(struct lanefs_handle *h, struct inode *inode, const struct lanefs_map *map);
int lanefs_map_replace(struct lanefs_handle *h, struct inode *inode, const struct lanefs_map *map);
int lanefs_map_remove(struct lanefs_handle *h, struct inode *inode, u64 logical, u64 length);
int lanefs_map_split(struct lanefs_handle *h, struct inode *inode, u64 logical);
int lanefs_map_shift_down(struct lanefs_handle *h, struct inode *inode, u64 *at, u64 by);
int lanefs_map_shift_up(struct lanefs_handle *h, struct inode *inode, u64 first, u64 *at, u64 by);
int lanefs_map_written(struct lanefs_handle *h, struct inode *inode, u64 logical, u64 length,
		       u64 *done);

#endif
