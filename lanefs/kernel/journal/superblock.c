// SPDX-License-Identifier: GPL-2.0-only
/* The superblock on disk: the state and the epoch of the journals, and the label. */
#include <linux/blkdev.h>

#include "core/block.h"
#include "journal/journal.h"

/* Under s_super_mutex: writes block 0. */
static int lanefs_write_super_locked(struct lanefs_sb *sbi, u32 state)
{
	struct lanefs_super_block *super = lanefs_super_of(sbi);

	lockdep_assert_held(&sbi->s_super_mutex);
	if (sbi->s_damaged)
		state |= LANEFS_STATE_ERROR;
	super->sb_state = cpu_to_le32(state);
	super->sb_epoch = cpu_to_le64(sbi->s_epoch);
	super->sb_header.lh_epoch = super->sb_epoch;
	lanefs_block_seal(super);
	return lanefs_bio_sync(sbi, 0, sbi->s_super,
			       REQ_OP_WRITE | REQ_SYNC | REQ_PREFLUSH | REQ_FUA);
}

/* Under s_super_mutex: writes what block 0 holds to its copies. */
static int lanefs_write_copies_locked(struct lanefs_sb *sbi)
{
	struct lanefs_super_block *super = lanefs_super_of(sbi);
	int err = 0;
	u64 base;
	u32 i;

	lockdep_assert_held(&sbi->s_super_mutex);
	for (i = 0; i < sbi->s_domains && !err; i++) {
		base = sbi->s_journal[i]->j_layout->base;
		super->sb_header.lh_block = cpu_to_le64(base);
		lanefs_block_seal(super);
		err = lanefs_bio_sync(sbi, base, sbi->s_super, REQ_OP_WRITE | REQ_SYNC);
	}
	super->sb_header.lh_block = 0;
	return err;
}

/**
 * lanefs_write_super() - write block 0 with the current epoch, durably
 * @sbi: the file system
 * @state: LANEFS_STATE_CLEAN or LANEFS_STATE_MOUNTED; that there was damage is added
 * @copies: write those in the domains as well, afterwards and not flushed
 *
 * Context: Outside of handles; takes s_super_mutex, and sleeps for the writes.
 * Return: 0 or the error of a write.
 */
int lanefs_write_super(struct lanefs_sb *sbi, u32 state, bool copies)
{
	int err;

	mutex_lock(&sbi->s_super_mutex);
	err = lanefs_write_super_locked(sbi, state);
	if (!err && copies)
		err = lanefs_write_copies_locked(sbi);
	mutex_unlock(&sbi->s_super_mutex);
	return err;
}

/**
 * lanefs_get_label() - copy the label
 * @sbi: the file system
 * @label: gets LANEFS_LABEL_MAX bytes, padded by zeros: none ends a label of that length
 *
 * Context: Outside of handles; takes s_super_mutex.
 */
void lanefs_get_label(struct lanefs_sb *sbi, char *label)
{
	mutex_lock(&sbi->s_super_mutex);
	memcpy(label, lanefs_super_of(sbi)->sb_label, LANEFS_LABEL_MAX);
	mutex_unlock(&sbi->s_super_mutex);
}

/**
 * lanefs_set_label() - change the label, on the device as well
 * @sbi: the file system
 * @label: LANEFS_LABEL_MAX bytes, padded by zeros
 *
 * Context: Outside of handles; takes s_super_mutex, and sleeps for writes of block 0 and its
 * copies.
 * Return: 0, or the error of a write: of block 0, then the label in memory is the old one; or of a
 * copy, then it is the new one, as in block 0.
 */
int lanefs_set_label(struct lanefs_sb *sbi, const char *label)
{
	struct lanefs_super_block *super = lanefs_super_of(sbi);
	u8 old[LANEFS_LABEL_MAX];
	int err;

	mutex_lock(&sbi->s_super_mutex);
	memcpy(old, super->sb_label, LANEFS_LABEL_MAX);
	memcpy(super->sb_label, label, LANEFS_LABEL_MAX);
	err = lanefs_write_super_locked(sbi, le32_to_cpu(super->sb_state));
	if (err)
		memcpy(super->sb_label, old, LANEFS_LABEL_MAX);
	else
		err = lanefs_write_copies_locked(sbi);
	mutex_unlock(&sbi->s_super_mutex);
	return err;
}
