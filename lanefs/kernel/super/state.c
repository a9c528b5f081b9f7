// SPDX-License-Identifier: GPL-2.0-only
/*
 * The superblock, and the steps between read-only and read-write: epochs, the start and the
 * orderly end of the journals.
 */
#include <linux/blkdev.h>
#include <linux/fs_context.h>

#include "core/block.h"
#include "super/super.h"

static bool lanefs_geometry_sound(const struct lanefs_super_block *super, u64 device_blocks)
{
	u64 blocks = le64_to_cpu(super->sb_blocks), start = le64_to_cpu(super->sb_domain_start);
	u64 size = le64_to_cpu(super->sb_domain_blocks);
	u64 inodes = le64_to_cpu(super->sb_domain_inodes);
	u32 domains = le32_to_cpu(super->sb_domains), spans = le32_to_cpu(super->sb_span_dirs);
	u32 journal = le32_to_cpu(super->sb_journal_blocks);
	struct lanefs_layout layout;

	if (blocks > device_blocks || !start || start >= blocks || !domains ||
	    domains > LANEFS_MAX_DOMAINS || !size || size > div_u64(blocks - start, domains))
		return false;
	if (journal < LANEFS_MIN_JOURNAL || journal > size || inodes <= LANEFS_FIRST_INDEX ||
	    inodes > size * LANEFS_INODES_PER_BLOCK || inodes >> LANEFS_DOMAIN_SHIFT)
		return false;
	if (!spans || spans > LANEFS_MAX_SPAN_DIRS || (spans & (spans - 1)))
		return false;
	lanefs_domain_layout(&layout, 0, start, size, inodes, journal,
			     le64_to_cpu(super->sb_incompat));
	return layout.data < layout.end;
}

/* Reads block 0 and checks it; fills in what it says of the whole file system. */
int lanefs_read_super(struct lanefs_sb *sbi, struct fs_context *fc)
{
	struct super_block *sb = sbi->s_vfs;
	struct lanefs_super_block *super = lanefs_super_of(sbi);
	u64 unknown;
	int err;

	err = lanefs_bio_sync(sbi, 0, sbi->s_super, REQ_OP_READ);
	if (err)
		return err;
	if (le32_to_cpu(super->sb_header.lh_magic) != LANEFS_MAGIC_SUPER)
		return invalf(fc, "not a lanefs file system");
	if (!lanefs_block_good(super, LANEFS_MAGIC_SUPER, 0, super->sb_header.lh_uuid)) {
		errorf(fc, "the superblock is damaged; run fsck.lanefs");
		return -EUCLEAN;
	}
	if (le32_to_cpu(super->sb_version) != LANEFS_VERSION ||
	    le32_to_cpu(super->sb_block_shift) != LANEFS_BLOCK_SHIFT)
		return invalf(fc, "unknown version or block size");
	unknown = le64_to_cpu(super->sb_incompat) & ~LANEFS_INCOMPAT_KNOWN;
	if (unknown)
		return invalf(fc, "unknown incompatible features %#llx", unknown);
	unknown = le64_to_cpu(super->sb_ro_compat) & ~LANEFS_RO_COMPAT_KNOWN;
	if (unknown && !sb_rdonly(sb))
		return invalf(fc, "unknown features %#llx: only a read-only mount is possible", unknown);
	if (!lanefs_geometry_sound(super, bdev_nr_bytes(sb->s_bdev) >> LANEFS_BLOCK_SHIFT)) {
		errorf(fc, "the superblock's sizes are invalid, or larger than the device");
		return -EUCLEAN;
	}
	memcpy(sbi->s_uuid, super->sb_header.lh_uuid, sizeof(sbi->s_uuid));
	lanefs_set_uuid(sb, sbi->s_uuid);
	sbi->s_hash_seed[0] = le64_to_cpu(super->sb_hash_seed[0]);
	sbi->s_hash_seed[1] = le64_to_cpu(super->sb_hash_seed[1]);
	sbi->s_epoch = le64_to_cpu(super->sb_epoch);
	sbi->s_ro_compat = le64_to_cpu(super->sb_ro_compat);
	sbi->s_incompat = le64_to_cpu(super->sb_incompat);
	sbi->s_span_dirs = le32_to_cpu(super->sb_span_dirs);
	sbi->s_domain_start = le64_to_cpu(super->sb_domain_start);
	sbi->s_domain_blocks = le64_to_cpu(super->sb_domain_blocks);
	sbi->s_domain_inodes = le64_to_cpu(super->sb_domain_inodes);
	return 0;
}

/* Begins an epoch, which makes all journals void, and writes empty ones. */
int lanefs_new_epoch(struct lanefs_sb *sbi, u32 state)
{
	struct lanefs_journal *journal;
	int err;
	u32 i;

	sbi->s_epoch++;
	err = lanefs_write_super(sbi, state, true);
	for (i = 0; i < sbi->s_domains && !err; i++) {
		journal = sbi->s_journal[i];
		journal->j_tail = 0;
		journal->j_head = 0;
		journal->j_tail_seq = journal->j_next_seq;
		err = lanefs_write_tail(journal);
	}
	return err;
}

/* From read-only, with nothing to recover, to read-write. */
int lanefs_set_writable(struct lanefs_sb *sbi)
{
	int err = lanefs_each_domain(sbi, lanefs_orphans_scan);
	u32 i;

	if (!err)
		err = lanefs_new_epoch(sbi, LANEFS_STATE_MOUNTED);
	for (i = 0; i < sbi->s_domains && !err; i++)
		err = lanefs_journal_start(sbi->s_journal[i]);
	if (!err)
		WRITE_ONCE(sbi->s_started, true);
	if (!err)
		lanefs_gc_allow(sbi, true);
	for (i = 0; i < sbi->s_domains && err; i++)
		lanefs_journal_stop(sbi->s_journal[i]);
	return err;
}

/* Writes all in place; the journals are void then. */
int lanefs_checkpoint_all(struct lanefs_sb *sbi)
{
	int err = lanefs_stabilise_all(sbi);
	u32 i;

	for (i = 0; i < sbi->s_domains && !err; i++)
		err = lanefs_checkpoint(sbi->s_journal[i]);
	return err ?: blkdev_issue_flush(sbi->s_vfs->s_bdev);
}

/*
 * From read-write to read-only. After an error the state stays one that asks for recovery. There
 * may be writers, as an emergency remount (sysrq) does not wait for them: their handles that are
 * open still count, and no more are opened.
 */
int lanefs_set_read_only(struct lanefs_sb *sbi)
{
	bool started = sbi->s_started;
	int err = 0;
	u32 i;

	lanefs_gc_allow(sbi, false);
	WRITE_ONCE(sbi->s_started, false);
	for (i = 0; i < sbi->s_domains; i++)
		wake_up_all(&sbi->s_journal[i]->j_wait_join);
	if (started)
		err = READ_ONCE(sbi->s_aborted) ? -EIO : lanefs_checkpoint_all(sbi);
	if (err)
		lanefs_abort(sbi);
	for (i = 0; i < sbi->s_domains; i++)
		lanefs_journal_stop(sbi->s_journal[i]);
	lanefs_discard_wait(sbi);
	if (!started)
		return 0;
	if (!err)
		err = lanefs_write_super(sbi, LANEFS_STATE_CLEAN, false);
	else if (sbi->s_damaged)
		lanefs_write_super(sbi, LANEFS_STATE_MOUNTED, false);
	/* A remount that fails with it leaves a mount that is writable, without journals. */
	if (err)
		lanefs_abort(sbi);
	return err;
}
