// SPDX-License-Identifier: GPL-2.0-only
/* The end of all changes after an error, as a journal that lost one cannot go on. */
#include "journal/journal.h"

/**
 * lanefs_abort() - stop all changes
 * @sbi: the file system
 *
 * What is not stable is given up, and the next mount recovers. Tasks that wait to join a
 * transaction, or for a commit, get an error.
 *
 * Context: As lanefs_error(); does not sleep.
 */
void lanefs_abort(struct lanefs_sb *sbi)
{
	struct super_block *sb = sbi->s_vfs;
	struct lanefs_journal *journal;
	u32 i;

	if (xchg(&sbi->s_aborted, true))
		return;
	pr_err("lanefs (%s): aborted; read-only until the next mount\n", sb->s_id);
	/* syncfs() does not ask what is read-only, and is to say that changes are lost. */
	errseq_set(&sb->s_wb_err, -EIO);
	/* A thaw does nothing for what is read-only: where it freezes, or has, the flag comes after. */
	if (sb_start_write_trylock(sb)) {
		sb->s_flags |= SB_RDONLY;
		sb_end_write(sb);
	}
	for (i = 0; i < sbi->s_domains; i++) {
		journal = sbi->s_journal[i];
		/* A join through a slot does not check whether the file system was aborted. */
		spin_lock(&journal->j_lock);
		if (journal->j_running)
			journal->j_running->t_reserved -= lanefs_slots_close(journal);
		spin_unlock(&journal->j_lock);
		wake_up_all(&journal->j_wait_join);
		wake_up_all(&journal->j_wait_committed[0]);
		wake_up_all(&journal->j_wait_committed[1]);
		wake_up_all(&journal->j_wait_checkpoint_work);
	}
	wake_up_all(&sbi->s_wait_flushed);
}

/**
 * lanefs_shutdown() - stop all changes, and all reads
 * @sbi: the file system
 *
 * As lanefs_abort(), where the device is lost, or is to be taken for lost: what is cached may be
 * newer than what the next mount finds. After damage alone reads go on.
 *
 * Context: As lanefs_error(); does not sleep.
 */
void lanefs_shutdown(struct lanefs_sb *sbi)
{
	WRITE_ONCE(sbi->s_shutdown, true);
	lanefs_abort(sbi);
}

static void lanefs_report(struct lanefs_sb *sbi, const char *format, va_list *args)
{
	struct va_format message = { .fmt = format, .va = args };

	pr_err_ratelimited("lanefs (%s): %pV\n", sbi->s_vfs->s_id, &message);
}

/**
 * lanefs_error() - report damage, have it noted in the superblock, and abort
 * @sbi: the file system
 * @format: of the message
 * @...: its arguments
 *
 * Context: Any in which nothing of lanefs is locked by a spinlock.
 */
void lanefs_error(struct lanefs_sb *sbi, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	lanefs_report(sbi, format, &args);
	va_end(args);
	sbi->s_damaged = true;
	lanefs_abort(sbi);
}

/**
 * lanefs_io_error() - report an I/O error of metadata, and abort
 * @sbi: the file system
 * @format: of the message
 * @...: its arguments
 *
 * What could not be written is in the journal.
 *
 * Context: As lanefs_error().
 */
void lanefs_io_error(struct lanefs_sb *sbi, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	lanefs_report(sbi, format, &args);
	va_end(args);
	lanefs_abort(sbi);
}
