// SPDX-License-Identifier: GPL-2.0-only
/*
 * Directories: a B+ tree of entries by the keyed hash of their names. An entry's key never
 * changes, so that the key is the readdir cookie. The caller holds the directory's lock.
 */
#include <linux/fs.h>

#include "core/leaf.h"
#include "core/namehash.h"
#include "dir/dir.h"

/* The cookies of "." and ".." are 0 and 1. */
#define LANEFS_DOTS	2

static u64 lanefs_dir_key(const struct inode *dir, const void *name, unsigned int length)
{
	const struct lanefs_sb *sbi = LANEFS_SB(dir->i_sb);
	struct lanefs_hash_key key = { { sbi->s_hash_seed[0], sbi->s_hash_seed[1] } };

	return LANEFS_HASH_KEY(lanefs_siphash(&key, name, length));
}

/* The leaf that continues the entries of the hash of `key`; -ENOENT: there is none. */
static int lanefs_dir_next_leaf(struct inode *dir, u64 key, struct lanefs_path *path)
{
	u64 next = path->p_next;

	lanefs_path_put(path);
	if (next > (key | LANEFS_KEY_SEQ_MASK))
		return -ENOENT;
	return lanefs_tree_find(dir, next, path);
}

/* Finds a name: -ENOENT, or its key and inode number. */
int lanefs_dir_find(struct inode *dir, const void *name, unsigned int length, u64 *key, u64 *ino)
{
	u64 first = lanefs_dir_key(dir, name, length);
	struct lanefs_dirent *entry;
	struct lanefs_path path;
	int err;

	if (lanefs_dir_empty(dir))
		return -ENOENT;
	err = lanefs_tree_find(dir, first, &path);
	while (!err) {
		entry = lanefs_leaf_lookup(path.p_buf[0]->b_data, first, name, length);
		if (entry) {
			*key = le64_to_cpu(entry->de_key);
			*ino = le64_to_cpu(entry->de_ino);
			lanefs_path_put(&path);
			return 0;
		}
		err = lanefs_dir_next_leaf(dir, first, &path);
	}
	return err;
}

static int lanefs_dir_free_key(struct inode *dir, u64 first, u64 *key)
{
	struct lanefs_path path;
	int err;

	*key = first;
	if (lanefs_dir_empty(dir))
		return 0;
	err = lanefs_tree_find(dir, first, &path);
	while (!err && lanefs_leaf_free_key(path.p_buf[0]->b_data, key))
		err = lanefs_dir_next_leaf(dir, first, &path);
	if (!err)
		lanefs_path_put(&path);
	if (err && err != -ENOENT)
		return err;
	return *key > (first | LANEFS_KEY_SEQ_MASK) ? -ENOSPC : 0;
}

/*
 * Adds a name that is not there. lanefs_tree_blocks_needed() blocks must be reserved; the directory
 * is to be journaled afterwards.
 */
int lanefs_dir_add(struct lanefs_handle *h, struct inode *dir, const void *name,
		   unsigned int length, u64 ino, umode_t mode)
{
	struct lanefs_path path;
	u64 key;
	int err;

	err = lanefs_dir_free_key(dir, lanefs_dir_key(dir, name, length), &key);
	if (err)
		return err;
	err = lanefs_tree_find_room(h, dir, key, LANEFS_DIRENT_SIZE(length), &path);
	if (err)
		return err;
	err = lanefs_leaf_insert(path.p_buf[0]->b_data, key, ino, fs_umode_to_ftype(mode), name,
				 length);
	lanefs_path_put(&path);
	if (err) {
		lanefs_error(LANEFS_SB(dir->i_sb), "directory %llu: entries are out of order", lanefs_number(dir));
		return -EUCLEAN;
	}
	return 0;
}

/* The leaf and the entry of a key that was found under the same lock. */
static struct lanefs_dirent *lanefs_dir_entry(struct lanefs_handle *h, struct inode *dir, u64 key,
					      struct lanefs_path *path)
{
	struct lanefs_dirent *entry = NULL;
	int err;

	err = lanefs_tree_find(dir, key, path);
	if (err)
		return ERR_PTR(err);
	if (path->p_level) {
		lanefs_buf_join(h, path->p_buf[0]);
		entry = lanefs_leaf_seek(path->p_buf[0]->b_data, key);
	}
	if (entry && le64_to_cpu(entry->de_key) == key)
		return entry;
	lanefs_path_put(path);
	lanefs_error(LANEFS_SB(dir->i_sb), "directory %llu: an entry is missing", lanefs_number(dir));
	return ERR_PTR(-EUCLEAN);
}

/* Removes an entry; the directory is to be journaled afterwards. */
int lanefs_dir_remove(struct lanefs_handle *h, struct inode *dir, u64 key)
{
	struct lanefs_dirent *entry;
	struct lanefs_path path;
	int err = 0;

	entry = lanefs_dir_entry(h, dir, key, &path);
	if (IS_ERR(entry))
		return PTR_ERR(entry);
	lanefs_leaf_remove(path.p_buf[0]->b_data, entry);
	if (!lanefs_buf_header(path.p_buf[0])->lh_count)
		err = lanefs_tree_drop_leaf(h, dir, &path);
	lanefs_path_put(&path);
	return err;
}

/* Lets an entry name another inode. */
int lanefs_dir_replace(struct lanefs_handle *h, struct inode *dir, u64 key, u64 ino, umode_t mode)
{
	struct lanefs_dirent *entry;
	struct lanefs_path path;

	entry = lanefs_dir_entry(h, dir, key, &path);
	if (IS_ERR(entry))
		return PTR_ERR(entry);
	entry->de_ino = cpu_to_le64(ino);
	entry->de_type = fs_umode_to_ftype(mode);
	lanefs_path_put(&path);
	return 0;
}

static bool lanefs_dir_emit_leaf(struct dir_context *ctx, void *leaf)
{
	struct lanefs_dirent *entry;

	for (entry = lanefs_leaf_seek(leaf, ctx->pos - LANEFS_DOTS); entry;
	     entry = lanefs_leaf_next(leaf, entry)) {
		ctx->pos = le64_to_cpu(entry->de_key) + LANEFS_DOTS;
		if (!dir_emit(ctx, entry->de_name, le16_to_cpu(entry->de_name_len),
			      le64_to_cpu(entry->de_ino), fs_ftype_to_dtype(entry->de_type)))
			return false;
		ctx->pos++;
	}
	return true;
}

static int lanefs_readdir(struct file *file, struct dir_context *ctx)
{
	struct inode *dir = file_inode(file);
	struct lanefs_path path;
	bool more;
	u64 next;
	int err;

	if (lanefs_is_shutdown(dir->i_sb))
		return -EIO;
	if (ctx->pos < LANEFS_DOTS && !dir_emit_dots(file, ctx))
		return 0;
	while (!lanefs_dir_empty(dir) && ctx->pos != LLONG_MAX) {
		err = lanefs_tree_find(dir, ctx->pos - LANEFS_DOTS, &path);
		if (err)
			return err;
		more = lanefs_dir_emit_leaf(ctx, path.p_buf[0]->b_data);
		next = path.p_next;
		lanefs_path_put(&path);
		if (!more)
			return 0;
		if (next > LLONG_MAX - LANEFS_DOTS)
			ctx->pos = LLONG_MAX;
		else if (ctx->pos < (loff_t)next + LANEFS_DOTS)
			ctx->pos = next + LANEFS_DOTS;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static loff_t lanefs_dir_llseek(struct file *file, loff_t offset, int whence)
{
	return generic_file_llseek_size(file, offset, whence, LLONG_MAX, LLONG_MAX);
}

const struct file_operations lanefs_dir_fops = {
	.llseek = lanefs_dir_llseek,
	.read = generic_read_dir,
	.iterate_shared = lanefs_readdir,
	.fsync = lanefs_fsync,
	.unlocked_ioctl = lanefs_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.setlease = generic_setlease,
};
