// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cache of metadata blocks, one for each domain.
 *
 * A block is checked when it is read; from then on only lanefs changes it. Its contents may only
 * be changed after lanefs_buf_join() in a handle, by who holds the lock of what it describes.
 * Joining may replace b_data, so pointers into it are taken afterwards.
 */
#include <linux/highmem.h>
#include <linux/slab.h>

#include "core/block.h"
#include "core/extents.h"
#include "core/leaf.h"
#include "core/xattrs.h"
#include "journal/journal.h"

/**
 * lanefs_block_sync() - read or write one block of the device
 * @sbi: the file system
 * @block: its number
 * @page: its contents
 * @opf: operation and flags; REQ_META keeps it out of the task's cgroup
 *
 * Context: Sleeps until the I/O has ended.
 * Return: 0 or the error of the I/O.
 */
int lanefs_block_sync(struct lanefs_sb *sbi, u64 block, struct page *page, blk_opf_t opf)
{
	struct bio_vec vec;
	struct bio bio;
	int err;

	bio_init(&bio, sbi->s_vfs->s_bdev, &vec, 1, opf);
	bio.bi_iter.bi_sector = block << LANEFS_SECTOR_SHIFT;
	if (opf & REQ_META)
		lanefs_bio_no_cgroup(&bio);
	__bio_add_page(&bio, page, LANEFS_BLOCK_SIZE, 0);
	err = submit_bio_wait(&bio);
	bio_uninit(&bio);
	return err;
}

void lanefs_init_header(struct lanefs_sb *sbi, void *data, u32 magic, u64 block, u64 owner)
{
	struct lanefs_header *header = data;

	header->lh_magic = cpu_to_le32(magic);
	header->lh_block = cpu_to_le64(block);
	memcpy(header->lh_uuid, sbi->s_uuid, sizeof(header->lh_uuid));
	header->lh_owner = cpu_to_le64(owner);
}

static bool lanefs_nodes_sound(const struct lanefs_header *header)
{
	const struct lanefs_index *index = (const void *)header + LANEFS_HEADER_SIZE;
	unsigned int count = le16_to_cpu(header->lh_count), i;

	if (!count || count > LANEFS_NODE_RECORDS)
		return false;
	for (i = 1; i < count; i++)
		if (le64_to_cpu(index[i - 1].ix_key) >= le64_to_cpu(index[i].ix_key))
			return false;
	return true;
}

static bool lanefs_block_sound(struct lanefs_sb *sbi, const void *data, u64 block)
{
	const struct lanefs_header *header = data;
	unsigned int count = le16_to_cpu(header->lh_count);
	u64 index = lanefs_ino_index(le64_to_cpu(header->lh_owner));

	if (le64_to_cpu(header->lh_block) != block ||
	    memcmp(header->lh_uuid, sbi->s_uuid, sizeof(header->lh_uuid)) ||
	    le32_to_cpu(header->lh_crc) != lanefs_block_crc(data))
		return false;
	switch (le32_to_cpu(header->lh_magic)) {
	case LANEFS_MAGIC_DIRENTS:
		return !header->lh_level && count &&
		       lanefs_leaf_valid(data, index >= LANEFS_SPAN_INDEX &&
					 index < LANEFS_FIRST_INDEX);
	case LANEFS_MAGIC_NODE:
		return header->lh_level && lanefs_nodes_sound(header);
	case LANEFS_MAGIC_EXTENTS:
		return !header->lh_level && count && count <= LANEFS_NODE_RECORDS &&
		       lanefs_extents_valid(data + LANEFS_HEADER_SIZE, count);
	case LANEFS_MAGIC_XATTR:
		return !header->lh_level && count && lanefs_xattrs_valid(data);
	}
	return true;
}

static struct lanefs_buf *lanefs_buf_lookup(struct lanefs_journal *journal, u64 block)
{
	struct lanefs_buf *buf;

	rcu_read_lock();
	buf = xa_load(&journal->j_cache, block);
	if (buf && !atomic_inc_not_zero(&buf->b_ref))
		buf = NULL;
	rcu_read_unlock();
	return buf;
}

/**
 * lanefs_buf_cached() - find a metadata block that needs no reading
 * @journal: of the block's domain
 * @block: its number
 *
 * Context: Any.
 * Return: the block, with a reference, or NULL.
 */
struct lanefs_buf *lanefs_buf_cached(struct lanefs_journal *journal, u64 block)
{
	struct lanefs_buf *buf = lanefs_buf_lookup(journal, block);

	if (!buf || test_bit_acquire(LANEFS_BUF_VALID, &buf->b_flags))
		return buf;
	lanefs_buf_put(buf);
	return NULL;
}

static struct lanefs_buf *lanefs_buf_get(struct lanefs_journal *journal, u64 block)
{
	struct lanefs_buf *buf;

	for (;;) {
		buf = lanefs_buf_lookup(journal, block);
		if (buf)
			break;
		buf = kzalloc(sizeof(*buf), GFP_NOFS | __GFP_NOFAIL);
		buf->b_page = alloc_page(GFP_NOFS | __GFP_NOFAIL);
		buf->b_data = page_address(buf->b_page);
		buf->b_block = block;
		buf->b_journal = journal;
		atomic_set(&buf->b_ref, 2);
		mutex_init(&buf->b_mutex);
		INIT_LIST_HEAD(&buf->b_home_node);
		/* Into the list first: who finds it in the cache may take it out of both. */
		spin_lock(&journal->j_cache_lock);
		list_add_tail(&buf->b_cache_node, &journal->j_cache_list);
		journal->j_cache_count++;
		spin_unlock(&journal->j_cache_lock);
		if (!xa_insert(&journal->j_cache, block, buf, GFP_NOFS | __GFP_NOFAIL))
			break;
		spin_lock(&journal->j_cache_lock);
		list_del(&buf->b_cache_node);
		journal->j_cache_count--;
		spin_unlock(&journal->j_cache_lock);
		put_page(buf->b_page);
		kfree(buf);
		/* Another task was first, or the shrinker is about to remove it. */
		cond_resched();
	}
	if (!test_bit(LANEFS_BUF_USED, &buf->b_flags))
		set_bit(LANEFS_BUF_USED, &buf->b_flags);
	return buf;
}

/**
 * lanefs_buf_put() - drop a reference to a block
 * @buf: the block, or NULL
 *
 * Context: Any.
 */
void lanefs_buf_put(struct lanefs_buf *buf)
{
	if (!buf || !atomic_dec_and_test(&buf->b_ref))
		return;
	/* It was taken out of the cache. */
	put_page(buf->b_page);
	if (buf->b_home)
		put_page(buf->b_home);
	kfree_rcu(buf, b_rcu);
}

static void lanefs_buf_set_valid(struct lanefs_buf *buf)
{
	const struct lanefs_header *header = lanefs_buf_header(buf);

	buf->b_magic = le32_to_cpu(header->lh_magic);
	buf->b_owner = le64_to_cpu(header->lh_owner);
	smp_mb__before_atomic();
	set_bit(LANEFS_BUF_VALID, &buf->b_flags);
}

/**
 * lanefs_buf_read() - get a metadata block, read if need be and checked
 * @journal: of the block's domain
 * @block: its number
 * @magic: the kind that it must have
 * @owner: the owner that it must have
 *
 * Context: May sleep for a read; within or outside of handles.
 * Return: the block, with a reference, or an ERR_PTR: -EUCLEAN where it is damaged or another
 * one, or the error of the read. Either aborts the file system.
 */
struct lanefs_buf *lanefs_buf_read(struct lanefs_journal *journal, u64 block, u32 magic, u64 owner)
{
	struct lanefs_sb *sbi = journal->j_sbi;
	struct lanefs_buf *buf;
	int err = 0;

	if (block < journal->j_layout->ibitmap || block >= journal->j_layout->end) {
		lanefs_error(sbi, "domain %u: block %llu is not a metadata block of this domain",
			     journal->j_id, block);
		return ERR_PTR(-EUCLEAN);
	}
	buf = lanefs_buf_get(journal, block);
	if (!test_bit_acquire(LANEFS_BUF_VALID, &buf->b_flags)) {
		mutex_lock(&buf->b_mutex);
		if (!test_bit(LANEFS_BUF_VALID, &buf->b_flags)) {
			err = lanefs_bio_sync(sbi, block, buf->b_page, REQ_OP_READ);
			if (!err && !lanefs_block_sound(sbi, buf->b_data, block))
				err = -EUCLEAN;
			if (!err)
				lanefs_buf_set_valid(buf);
		}
		mutex_unlock(&buf->b_mutex);
	}
	/* The page itself may be exchanged by a task that joins the block. */
	if (!err && (buf->b_magic != magic || buf->b_owner != owner))
		err = -EUCLEAN;
	if (!err)
		return buf;
	lanefs_buf_put(buf);
	if (err == -EUCLEAN)
		lanefs_error(sbi, "domain %u: block %llu is damaged, or not of kind %#x with owner %llu",
			     journal->j_id, block, magic, owner);
	else
		lanefs_io_error(sbi, "domain %u: block %llu cannot be read (%d)", journal->j_id,
				block, err);
	return ERR_PTR(err);
}

/**
 * lanefs_buf_new() - get a metadata block with new contents
 * @h: the handle, which the block joins
 * @journal: of the block's domain
 * @block: its number
 * @magic: its kind
 * @owner: its owner
 *
 * Context: In a handle of the domain; takes b_mutex.
 * Return: the block, with a reference: a header, and zeros.
 */
struct lanefs_buf *lanefs_buf_new(struct lanefs_handle *h, struct lanefs_journal *journal, u64 block,
				  u32 magic, u64 owner)
{
	struct lanefs_buf *buf = lanefs_buf_get(journal, block);

	lanefs_buf_join(h, buf);
	mutex_lock(&buf->b_mutex);
	memset(buf->b_data, 0, LANEFS_BLOCK_SIZE);
	lanefs_init_header(journal->j_sbi, buf->b_data, magic, block, owner);
	lanefs_buf_set_valid(buf);
	mutex_unlock(&buf->b_mutex);
	return buf;
}

/**
 * lanefs_buf_join() - make a block part of the handle's transaction
 * @h: the handle
 * @buf: the block
 *
 * It may be changed then, by who holds the lock of what it describes. It may replace b_data, so
 * pointers into that are taken afterwards.
 *
 * Context: In a handle of the domain, one of whose credits it takes; takes b_mutex.
 */
void lanefs_buf_join(struct lanefs_handle *h, struct lanefs_buf *buf)
{
	int part = lanefs_handle_part(h, buf->b_journal);
	struct lanefs_txn *txn = h->h_part[part].txn;
	struct page *page;

	if (smp_load_acquire(&buf->b_txn) == txn)
		return;
	mutex_lock(&buf->b_mutex);
	if (buf->b_txn == txn)
		goto out;
	BUG_ON(buf->b_txn);
	if (test_bit(LANEFS_BUF_FROZEN, &buf->b_flags)) {
		page = alloc_page(GFP_NOFS | __GFP_NOFAIL);
		memcpy(page_address(page), buf->b_data, LANEFS_BLOCK_SIZE);
		put_page(buf->b_page);
		buf->b_page = page;
		buf->b_data = page_address(page);
		clear_bit(LANEFS_BUF_FROZEN, &buf->b_flags);
	}
	if (buf->b_join.state == LANEFS_JOIN_OUT)
		atomic_inc(&buf->b_ref);
	lanefs_joinlist_insert(&txn->t_bufs, &buf->b_join);
	atomic_inc(&txn->t_joined);
	h->h_part[part].used++;
	/* A task that sees this bit uses b_data without the mutex. */
	smp_store_release(&buf->b_txn, txn);
out:
	mutex_unlock(&buf->b_mutex);
}

/**
 * lanefs_buf_unjoin() - take a block that is freed out of the handle's transaction
 * @h: the handle
 * @journal: of the block's domain
 * @block: its number
 *
 * Context: In a handle of the domain; takes b_mutex.
 */
void lanefs_buf_unjoin(struct lanefs_handle *h, struct lanefs_journal *journal, u64 block)
{
	struct lanefs_txn *txn = h->h_part[lanefs_handle_part(h, journal)].txn;
	struct lanefs_buf *buf = lanefs_buf_lookup(journal, block);

	if (!buf)
		return;
	mutex_lock(&buf->b_mutex);
	if (buf->b_txn == txn) {
		/* The list keeps its reference until it is fetched. */
		lanefs_joinlist_remove(&buf->b_join);
		atomic_dec(&txn->t_joined);
		buf->b_txn = NULL;
	}
	mutex_unlock(&buf->b_mutex);
	lanefs_buf_put(buf);
}

static void lanefs_cache_remove(struct lanefs_journal *journal, struct lanefs_buf *buf)
{
	xa_erase(&journal->j_cache, buf->b_block);
	list_del_init(&buf->b_cache_node);
	journal->j_cache_count--;
}

/* The block was freed by a transaction that is stable: never write it in place again. */
void lanefs_buf_forget(struct lanefs_journal *journal, u64 block)
{
	struct lanefs_buf *buf = lanefs_buf_lookup(journal, block);
	bool home = false;

	if (!buf)
		return;
	spin_lock(&journal->j_home_lock);
	if (!list_empty(&buf->b_home_node)) {
		list_del_init(&buf->b_home_node);
		home = true;
	}
	spin_unlock(&journal->j_home_lock);
	wait_on_bit(&buf->b_flags, LANEFS_BUF_WRITING, TASK_UNINTERRUPTIBLE);
	if (home)
		lanefs_buf_put(buf);
	spin_lock(&journal->j_cache_lock);
	lanefs_cache_remove(journal, buf);
	spin_unlock(&journal->j_cache_lock);
	lanefs_buf_put(buf);	/* the cache's */
	lanefs_buf_put(buf);
}

void lanefs_cache_init(struct lanefs_journal *journal)
{
	xa_init(&journal->j_cache);
	spin_lock_init(&journal->j_cache_lock);
	INIT_LIST_HEAD(&journal->j_cache_list);
	spin_lock_init(&journal->j_home_lock);
	INIT_LIST_HEAD(&journal->j_home);
}

/* Everything is unused, or the file system was aborted and what is changed is given up. */
void lanefs_cache_destroy(struct lanefs_journal *journal)
{
	struct lanefs_buf *buf, *next;

	list_for_each_entry_safe(buf, next, &journal->j_cache_list, b_cache_node) {
		if (!list_empty(&buf->b_home_node)) {
			list_del_init(&buf->b_home_node);
			lanefs_buf_put(buf);
		}
		lanefs_cache_remove(journal, buf);
		WARN_ON_ONCE(atomic_read(&buf->b_ref) != 1);
		lanefs_buf_put(buf);
	}
	xa_destroy(&journal->j_cache);
}

/**
 * lanefs_cache_count() - count the metadata blocks in memory (count_objects)
 * @shrinker: the mount's
 * @sc: not used
 *
 * Context: In reclaim.
 * Return: their number, or SHRINK_EMPTY.
 */
unsigned long lanefs_cache_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct lanefs_sb *sbi = lanefs_shrinker_private(shrinker);
	unsigned long count = 0;
	u32 i;

	for (i = 0; i < sbi->s_domains; i++)
		count += READ_ONCE(sbi->s_journal[i]->j_cache_count);
	return count ?: SHRINK_EMPTY;
}

static unsigned long lanefs_cache_shrink(struct lanefs_journal *journal, unsigned long count)
{
	unsigned long freed = 0;
	struct lanefs_buf *buf;

	spin_lock(&journal->j_cache_lock);
	for (count = min(count, journal->j_cache_count); count; count--) {
		buf = list_first_entry(&journal->j_cache_list, struct lanefs_buf, b_cache_node);
		list_move_tail(&buf->b_cache_node, &journal->j_cache_list);
		if (test_and_clear_bit(LANEFS_BUF_USED, &buf->b_flags))
			continue;
		if (atomic_cmpxchg(&buf->b_ref, 1, 0) != 1)
			continue;
		lanefs_cache_remove(journal, buf);
		put_page(buf->b_page);
		kfree_rcu(buf, b_rcu);
		freed++;
	}
	spin_unlock(&journal->j_cache_lock);
	return freed;
}

/**
 * lanefs_cache_scan() - free metadata blocks that nobody uses, and that are in place (scan_objects)
 * @shrinker: the mount's
 * @sc: how many to look at, all domains together
 *
 * If there are none, the checkpoint threads are asked to write blocks in place.
 *
 * Context: In reclaim, also from within a handle; takes j_cache_lock.
 * Return: how many were freed.
 */
unsigned long lanefs_cache_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct lanefs_sb *sbi = lanefs_shrinker_private(shrinker);
	unsigned long each = sc->nr_to_scan / sbi->s_domains + 1, freed = 0;
	u32 i;

	for (i = 0; i < sbi->s_domains; i++)
		freed += lanefs_cache_shrink(sbi->s_journal[i], each);
	/* Blocks that are not in place yet cannot be freed: write them. */
	for (i = 0; i < sbi->s_domains && !freed && READ_ONCE(sbi->s_started); i++)
		lanefs_checkpoint_request(sbi->s_journal[i]);
	return freed;
}
