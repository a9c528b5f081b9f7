// SPDX-License-Identifier: GPL-2.0-only
/*
 * Span directories: what names in other domains an inode of this domain has (format.h). They are
 * changed in the same operation as the name, so the two always agree.
 */
#include <linux/slab.h>

#include "core/namehash.h"
#include "dir/dir.h"

struct lanefs_span_name {
	u8 bytes[8 + LANEFS_NAME_MAX];
	unsigned int length;
};

static bool lanefs_needs_span(const struct inode *dir, const struct inode *inode)
{
	return LANEFS_I(dir)->li_domain != LANEFS_I(inode)->li_domain &&
	       (LANEFS_SB(dir->i_sb)->s_ro_compat & LANEFS_RO_COMPAT_SPAN);
}

/* Composes the remote entry's name; the span directory that it belongs into. */
static struct inode *lanefs_span_dir(const struct inode *dir, const struct qstr *name,
				     const struct inode *inode, struct lanefs_span_name *remote)
{
	struct lanefs_sb *sbi = LANEFS_SB(dir->i_sb);
	struct lanefs_hash_key key = { { sbi->s_hash_seed[0], sbi->s_hash_seed[1] } };
	u64 hash;

	put_unaligned_le64(dir->i_ino, remote->bytes);
	memcpy(remote->bytes + 8, name->name, name->len);
	remote->length = 8 + name->len;
	hash = LANEFS_KEY_HASH(LANEFS_HASH_KEY(lanefs_siphash(&key, remote->bytes,
							      remote->length)));
	return lanefs_domain_of(inode)->d_span[hash % sbi->s_span_dirs];
}

/* The inode gets a name in `dir`. The caller has reserved LANEFS_MAX_LEVEL + 2 blocks for that. */
int lanefs_span_add(struct lanefs_handle *h, const struct inode *dir, const struct qstr *name,
		    const struct inode *inode)
{
	struct lanefs_domain *domain = lanefs_domain_of(inode);
	struct lanefs_span_name remote;
	struct inode *span;
	int err;

	if (!lanefs_needs_span(dir, inode))
		return 0;
	span = lanefs_span_dir(dir, name, inode, &remote);
	mutex_lock(&domain->d_span_mutex);
	err = lanefs_dir_add(h, span, remote.bytes, remote.length, inode->i_ino, inode->i_mode);
	if (!err)
		lanefs_inode_journal(h, span, true);
	mutex_unlock(&domain->d_span_mutex);
	return err;
}

/* The inode loses its name in `dir`. */
int lanefs_span_remove(struct lanefs_handle *h, const struct inode *dir, const struct qstr *name,
		       const struct inode *inode)
{
	struct lanefs_domain *domain = lanefs_domain_of(inode);
	struct lanefs_span_name remote;
	struct inode *span;
	u64 key, ino;
	int err;

	if (!lanefs_needs_span(dir, inode))
		return 0;
	span = lanefs_span_dir(dir, name, inode, &remote);
	mutex_lock(&domain->d_span_mutex);
	err = lanefs_dir_find(span, remote.bytes, remote.length, &key, &ino);
	if (!err && ino == inode->i_ino)
		err = lanefs_dir_remove(h, span, key);
	else if (!err || err == -ENOENT)
		err = -EUCLEAN;
	if (!err)
		lanefs_inode_journal(h, span, true);
	mutex_unlock(&domain->d_span_mutex);
	if (err == -EUCLEAN)
		lanefs_error(domain->d_sbi, "domain %u: inode %llu lacks the remote entry of a name",
			     domain->d_id, lanefs_number(inode));
	return err;
}

/**
 * lanefs_span_start() - get the span directories of all domains
 * @sbi: the file system
 *
 * Does nothing where the file system keeps none. After an error lanefs_span_stop() is to follow.
 *
 * Context: At the mount; reads inodes.
 * Return: 0, -EUCLEAN: one is no directory, or has no links, or the error of lanefs_iget().
 */
int lanefs_span_start(struct lanefs_sb *sbi)
{
	struct inode *inode;
	u32 i, j;

	if (!(sbi->s_ro_compat & LANEFS_RO_COMPAT_SPAN))
		return 0;
	for (i = 0; i < sbi->s_domains; i++) {
		for (j = 0; j < sbi->s_span_dirs; j++) {
			inode = lanefs_iget(sbi->s_vfs, lanefs_ino(i, LANEFS_SPAN_INDEX + j));
			if (IS_ERR(inode))
				return PTR_ERR(inode);
			sbi->s_domain[i]->d_span[j] = inode;
			if (!S_ISDIR(inode->i_mode) || !inode->i_nlink) {
				lanefs_error(sbi, "domain %u: span directory %u is not a directory, or has no links",
					     i, j);
				return -EUCLEAN;
			}
		}
	}
	return 0;
}

/**
 * lanefs_span_stop() - put the span directories that are there
 * @sbi: the file system
 *
 * Context: When no operation on names can come any more; may sleep.
 */
void lanefs_span_stop(struct lanefs_sb *sbi)
{
	u32 i, j;

	for (i = 0; i < sbi->s_domains; i++) {
		for (j = 0; j < LANEFS_MAX_SPAN_DIRS; j++) {
			iput(sbi->s_domain[i]->d_span[j]);
			sbi->s_domain[i]->d_span[j] = NULL;
		}
	}
}
