// SPDX-License-Identifier: GPL-2.0-only
/*
 * The B+ tree that an inode is the root of: directories and extent maps (format.h).
 *
 * Insertion splits full blocks on the way down, so a parent always has room. The first key of a
 * node is the lower bound of what it covers, and stays when its first child goes.
 */
#include "core/extents.h"
#include "core/leaf.h"
#include "tree/tree.h"

struct lanefs_node {
	struct lanefs_index *index;
	unsigned int count;
};

static u32 lanefs_block_magic(const struct inode *inode, int level)
{
	if (level)
		return LANEFS_MAGIC_NODE;
	return S_ISDIR(inode->i_mode) ? LANEFS_MAGIC_DIRENTS : LANEFS_MAGIC_EXTENTS;
}

/* The node of that level on the path; the root's level is the tree's. */
static struct lanefs_node lanefs_node_of(struct inode *inode, const struct lanefs_path *path,
					 int level)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_header *header;

	if (level == li->li_level)
		return (struct lanefs_node){ (struct lanefs_index *)li->li_root, li->li_count };
	header = lanefs_buf_header(path->p_buf[level]);
	return (struct lanefs_node){ (struct lanefs_index *)(header + 1),
				     le16_to_cpu(header->lh_count) };
}

static void lanefs_node_set_count(struct inode *inode, const struct lanefs_path *path, int level,
				  unsigned int count)
{
	if (level == LANEFS_I(inode)->li_level)
		LANEFS_I(inode)->li_count = count;
	else
		lanefs_buf_header(path->p_buf[level])->lh_count = cpu_to_le16(count);
}

/**
 * lanefs_path_put() - put the blocks of a path
 * @path: of lanefs_tree_find() or lanefs_tree_find_room(); empty then
 *
 * Context: Any.
 */
void lanefs_path_put(struct lanefs_path *path)
{
	int i;

	for (i = 0; i < path->p_level; i++) {
		lanefs_buf_put(path->p_buf[i]);
		path->p_buf[i] = NULL;
	}
	path->p_level = 0;
}

static void lanefs_path_init(struct inode *inode, struct lanefs_path *path)
{
	memset(path, 0, sizeof(*path));
	path->p_level = LANEFS_I(inode)->li_level;
	path->p_next = U64_MAX;
}

/* Goes from the node of `level` to its child that covers `key`. */
static int lanefs_tree_step(struct inode *inode, u64 key, struct lanefs_path *path, int level)
{
	struct lanefs_node node = lanefs_node_of(inode, path, level);
	unsigned int slot = lanefs_index_find(node.index, node.count, key);
	struct lanefs_domain *domain = lanefs_domain_of(inode);
	u64 block = le64_to_cpu(node.index[slot].ix_block);
	struct lanefs_buf *buf;

	path->p_slot[level] = slot;
	if (slot)
		path->p_first = le64_to_cpu(node.index[slot].ix_key);
	if (slot + 1 < node.count)
		path->p_next = le64_to_cpu(node.index[slot + 1].ix_key);
	if (block < domain->d_layout.data) {
		lanefs_error(domain->d_sbi, "inode %llu: tree block %llu is outside the data area",
			     lanefs_number(inode), block);
		return -EUCLEAN;
	}
	buf = lanefs_buf_read(domain->d_journal, block, lanefs_block_magic(inode, level - 1),
			      inode->i_ino);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	if (le16_to_cpu(lanefs_buf_header(buf)->lh_level) != level - 1) {
		lanefs_buf_put(buf);
		lanefs_error(domain->d_sbi, "inode %llu: block %llu has a wrong level",
			     lanefs_number(inode), block);
		return -EUCLEAN;
	}
	path->p_buf[level - 1] = buf;
	return 0;
}

/**
 * lanefs_tree_find() - find the leaf that covers a key
 * @inode: the tree's
 * @key: the key
 * @path: to the leaf; p_level is 0 where there is none: an empty directory, an extent map in the
 *	inode
 *
 * On success lanefs_path_put() is to be called.
 *
 * Context: Under the lock of the tree: li_tree_sem, or for a directory i_rwsem.
 * Return: 0 or the error of a read.
 */
int lanefs_tree_find(struct inode *inode, u64 key, struct lanefs_path *path)
{
	int level, err;

	lanefs_path_init(inode, path);
	for (level = path->p_level; level > 0; level--) {
		err = lanefs_tree_step(inode, key, path, level);
		if (err) {
			lanefs_path_put(path);
			return err;
		}
	}
	return 0;
}

/**
 * lanefs_tree_cached() - tell whether all blocks on the way to a key are in memory
 * @inode: the tree's
 * @key: the key
 *
 * Context: Under the lock of the tree; does not sleep.
 * Return: whether they are; false also for a block of another owner, kind or level.
 */
bool lanefs_tree_cached(struct inode *inode, u64 key)
{
	struct lanefs_path path;
	struct lanefs_node node;
	struct lanefs_buf *buf;
	unsigned int slot;
	int level;

	lanefs_path_init(inode, &path);
	for (level = path.p_level; level > 0; level--) {
		node = lanefs_node_of(inode, &path, level);
		slot = lanefs_index_find(node.index, node.count, key);
		buf = lanefs_buf_cached(lanefs_journal_of(inode),
					le64_to_cpu(node.index[slot].ix_block));
		path.p_buf[level - 1] = buf;
		/* A block of another owner or a wrong level is left to a caller that may wait. */
		if (!buf || buf->b_magic != lanefs_block_magic(inode, level - 1) ||
		    buf->b_owner != inode->i_ino ||
		    le16_to_cpu(lanefs_buf_header(buf)->lh_level) != level - 1)
			break;
	}
	lanefs_path_put(&path);
	return !level;
}

/**
 * lanefs_tree_blocks_needed() - count the blocks that one lanefs_tree_find_room() may allocate
 * @inode: the tree's
 *
 * Context: Any; without the lock of the tree, as it was a moment ago.
 * Return: their number.
 */
u64 lanefs_tree_blocks_needed(const struct inode *inode)
{
	return READ_ONCE(LANEFS_I(inode)->li_level) + 2;
}

/**
 * lanefs_tree_credits() - count the blocks that a record more or less may change
 * @inode: the tree's
 *
 * On each level, of which there may be one more: two halves of a node, or one that goes, and the
 * bitmap for the new or the old one.
 *
 * Context: Under the lock of the tree, so that it does not grow before the handle.
 * Return: their number.
 */
unsigned int lanefs_tree_credits(const struct inode *inode)
{
	return 3 * lanefs_tree_blocks_needed(inode);
}

/**
 * lanefs_tree_room() - count the blocks that must be reserved before an extent is added
 * @inode: the file
 *
 * It may lie in two leaves. In a log it may replace a part of an extent, which leaves one on each
 * side.
 *
 * Context: Under li_tree_sem.
 * Return: their number, 0: there is room in the inode.
 */
u64 lanefs_tree_room(const struct inode *inode)
{
	const struct lanefs_inode *li = LANEFS_I(inode);
	/* Replacing a part of an extent leaves one on each side of it. */
	unsigned int more = lanefs_is_log(inode->i_sb) ? 2 : 1;

	if (!li->li_level && li->li_count + more <= LANEFS_ROOT_RECORDS)
		return 0;
	return 2 * lanefs_tree_blocks_needed(inode);
}

/* A new block of the tree. Its level and counts are the caller's to set. */
static struct lanefs_buf *lanefs_tree_new_block(struct lanefs_handle *h, struct inode *inode,
						int level)
{
	struct lanefs_buf *buf;

	buf = lanefs_buf_alloc(h, lanefs_domain_of(inode), lanefs_block_magic(inode, level),
			       inode->i_ino);
	if (IS_ERR(buf))
		return buf;
	lanefs_buf_header(buf)->lh_level = cpu_to_le16(level);
	lanefs_buf_header(buf)->lh_used = cpu_to_le16(!level && S_ISDIR(inode->i_mode) ?
						      LANEFS_HEADER_SIZE : 0);
	lanefs_add_blocks(inode, 1);
	if (!level && S_ISDIR(inode->i_mode))
		i_size_write(inode, i_size_read(inode) + LANEFS_BLOCK_SIZE);
	return buf;
}

/* Moves the root's records to a new block, which becomes its only child. */
static int lanefs_tree_grow(struct lanefs_handle *h, struct inode *inode)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	struct lanefs_index *root = (struct lanefs_index *)li->li_root;
	struct lanefs_header *header;
	struct lanefs_buf *buf;

	if (li->li_level == LANEFS_MAX_LEVEL)
		return -EFBIG;
	buf = lanefs_tree_new_block(h, inode, li->li_level);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	header = lanefs_buf_header(buf);
	memcpy(header + 1, li->li_root, li->li_count * sizeof(*root));
	header->lh_count = cpu_to_le16(li->li_count);
	memset(li->li_root, 0, sizeof(li->li_root));
	root->ix_key = 0;
	root->ix_block = cpu_to_le64(buf->b_block);
	li->li_count = 1;
	li->li_level++;
	lanefs_buf_put(buf);
	return 0;
}

static bool lanefs_node_has_space(const struct inode *inode, const struct lanefs_buf *buf,
				  int level,
				  unsigned int size)
{
	const struct lanefs_header *header = lanefs_buf_header(buf);

	if (level)
		return le16_to_cpu(header->lh_count) < LANEFS_NODE_RECORDS;
	if (S_ISDIR(inode->i_mode))
		return le16_to_cpu(header->lh_used) + size <= LANEFS_BLOCK_SIZE;
	return le16_to_cpu(header->lh_count) + size / sizeof(struct lanefs_extent) <=
	       LANEFS_NODE_RECORDS;
}

/* Moves the upper records of `left` to `right`, both of nodes or extents; right's first key. */
static u64 lanefs_split_records(struct lanefs_buf *left, struct lanefs_buf *right, int level,
				u64 key)
{
	struct lanefs_header *from = lanefs_buf_header(left), *to = lanefs_buf_header(right);
	unsigned int count = le16_to_cpu(from->lh_count), keep = count / 2;
	struct lanefs_index *index = (struct lanefs_index *)(from + 1);
	struct lanefs_extent *extent = (struct lanefs_extent *)(from + 1);

	/* A tree that grows at its end leaves full blocks behind. */
	if (!level && key >= le32_to_cpu(extent[count - 1].ex_logical))
		keep = count - 1;
	else if (level && key >= le64_to_cpu(index[count - 1].ix_key))
		keep = count - 1;
	memcpy(to + 1, index + keep, (count - keep) * sizeof(*index));
	memset(index + keep, 0, (count - keep) * sizeof(*index));
	from->lh_count = cpu_to_le16(keep);
	to->lh_count = cpu_to_le16(count - keep);
	if (level)
		return le64_to_cpu(((struct lanefs_index *)(to + 1))->ix_key);
	return le32_to_cpu(((struct lanefs_extent *)(to + 1))->ex_logical);
}

/* Splits the child of the node of `level` that is on the path, and goes to the proper half. */
static int lanefs_tree_split(struct lanefs_handle *h, struct inode *inode, u64 key,
			     struct lanefs_path *path, int level)
{
	struct lanefs_buf *left = path->p_buf[level - 1], *right;
	struct lanefs_node node;
	unsigned int slot;
	u64 middle;

	right = lanefs_tree_new_block(h, inode, level - 1);
	if (IS_ERR(right))
		return PTR_ERR(right);
	lanefs_buf_join(h, left);
	if (level < LANEFS_I(inode)->li_level)
		lanefs_buf_join(h, path->p_buf[level]);
	if (level == 1 && S_ISDIR(inode->i_mode))
		middle = lanefs_leaf_split(left->b_data, right->b_data);
	else
		middle = lanefs_split_records(left, right, level - 1, key);

	node = lanefs_node_of(inode, path, level);
	slot = path->p_slot[level] + 1;
	memmove(node.index + slot + 1, node.index + slot,
		(node.count - slot) * sizeof(*node.index));
	node.index[slot].ix_key = cpu_to_le64(middle);
	node.index[slot].ix_block = cpu_to_le64(right->b_block);
	lanefs_node_set_count(inode, path, level, node.count + 1);
	if (key >= middle) {
		path->p_slot[level] = slot;
		path->p_first = middle;
		path->p_buf[level - 1] = right;
		lanefs_buf_put(left);
	} else {
		path->p_next = middle;
		lanefs_buf_put(right);
	}
	return 0;
}

/**
 * lanefs_tree_find_room() - find the leaf for a new record, with room
 * @h: the handle, which the leaf joins
 * @inode: the tree's, to be journaled afterwards
 * @key: of the record
 * @size: bytes of records
 * @path: to the leaf
 *
 * Context: As lanefs_tree_find(), for writing, in a handle that has reserved
 * lanefs_tree_blocks_needed() blocks.
 * Return: 0, -EFBIG: the tree is as high as it may be, or the error of an allocation or a read.
 */
int lanefs_tree_find_room(struct lanefs_handle *h, struct inode *inode, u64 key, unsigned int size,
			  struct lanefs_path *path)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	unsigned int spare = li->li_level ? 1 : size / sizeof(struct lanefs_extent);
	int level, err;

	if (!li->li_level && S_ISDIR(inode->i_mode))
		spare = LANEFS_ROOT_RECORDS + 1;
	if (li->li_count + spare > LANEFS_ROOT_RECORDS) {
		err = lanefs_tree_grow(h, inode);
		if (err)
			return err;
	}
	lanefs_path_init(inode, path);
	for (level = path->p_level; level > 0; level--) {
		err = lanefs_tree_step(inode, key, path, level);
		if (!err && !lanefs_node_has_space(inode, path->p_buf[level - 1], level - 1, size))
			err = lanefs_tree_split(h, inode, key, path, level);
		if (err) {
			lanefs_path_put(path);
			return err;
		}
	}
	if (path->p_level)
		lanefs_buf_join(h, path->p_buf[0]);
	return 0;
}

static int lanefs_tree_free_block(struct lanefs_handle *h, struct inode *inode,
				  struct lanefs_buf *buf, int level)
{
	lanefs_add_blocks(inode, -1);
	if (!level && S_ISDIR(inode->i_mode))
		i_size_write(inode, i_size_read(inode) - LANEFS_BLOCK_SIZE);
	return lanefs_free_blocks(h, lanefs_domain_of(inode), buf->b_block, 1, true);
}

/**
 * lanefs_tree_drop_leaf() - free a leaf that has become empty, with the nodes that this empties
 * @h: the handle
 * @inode: the tree's, to be journaled afterwards
 * @path: to the leaf
 *
 * Context: Under the lock of the tree, for writing, in a handle of the inode's domain.
 * Return: 0 or the error of lanefs_free_blocks().
 */
int lanefs_tree_drop_leaf(struct lanefs_handle *h, struct inode *inode, struct lanefs_path *path)
{
	struct lanefs_inode *li = LANEFS_I(inode);
	int level, err, top = li->li_level;
	struct lanefs_node node;
	unsigned int slot;
	__le64 first;

	for (level = 1; level <= top; level++) {
		err = lanefs_tree_free_block(h, inode, path->p_buf[level - 1], level - 1);
		if (err)
			return err;
		if (level < top)
			lanefs_buf_join(h, path->p_buf[level]);
		node = lanefs_node_of(inode, path, level);
		slot = path->p_slot[level];
		first = node.index[0].ix_key;
		memmove(node.index + slot, node.index + slot + 1,
			(node.count - slot - 1) * sizeof(*node.index));
		node.count--;
		memset(node.index + node.count, 0, sizeof(*node.index));
		if (node.count)
			node.index[0].ix_key = first;
		lanefs_node_set_count(inode, path, level, node.count);
		if (node.count)
			return 0;
	}
	li->li_level = 0;
	return 0;
}

/*
 * What the leaf at the end of the path covers begins elsewhere, between the leaves beside it: rekey()
 * says where, of its key and of those of the nodes that begin with it.
 */
void lanefs_tree_rekey_leaf(struct lanefs_handle *h, struct inode *inode,
			    const struct lanefs_path *path, lanefs_rekey_fn *rekey, u64 at, u64 by)
{
	struct lanefs_index *entry;
	u64 key;
	int level;

	for (level = 1; level <= path->p_level; level++) {
		entry = &lanefs_node_of(inode, path, level).index[path->p_slot[level]];
		key = le64_to_cpu(entry->ix_key);
		if (rekey(key, at, by) != key) {
			if (level < path->p_level)
				lanefs_buf_join(h, path->p_buf[level]);
			/* A block that joins may be another copy. */
			entry = &lanefs_node_of(inode, path, level).index[path->p_slot[level]];
			entry->ix_key = cpu_to_le64(rekey(key, at, by));
		}
		if (path->p_slot[level])
			break;
	}
}
