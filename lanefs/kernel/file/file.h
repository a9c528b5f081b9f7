/* SPDX-License-Identifier: GPL-2.0-only */
/* Regular files: their data in memory and on disk, and the collectors that move it. */
#ifndef LANEFS_FILE_H
#define LANEFS_FILE_H

#include <linux/sched/signal.h>

#include "file/compat_iomap.h"
#include "inode/inode.h"

/* After a step of a walk of a file's map, with no lock of the map. -EINTR: the task is to die. */
static inline int lanefs_walk_pause(void)
{
	cond_resched();
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/* file.c */
extern const struct file_operations lanefs_file_fops;
extern const struct inode_operations lanefs_file_iops;
int lanefs_fsync(struct file *file, loff_t start, loff_t end, int datasync);

/* direct.c */
ssize_t lanefs_write_checks(struct kiocb *iocb, struct iov_iter *from);
ssize_t lanefs_direct_read(struct kiocb *iocb, struct iov_iter *to);
ssize_t lanefs_direct_overwrite(struct kiocb *iocb, struct iov_iter *from);
ssize_t lanefs_direct_write(struct kiocb *iocb, struct iov_iter *from);

/* size.c */
int lanefs_zero_tail(struct inode *inode, loff_t size);
bool lanefs_maps_past_end(struct inode *inode);
int lanefs_write_below(struct inode *inode, loff_t size);
int lanefs_file_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr);

/* data.c */
extern const struct address_space_operations lanefs_aops;
extern const struct lanefs_iomap_checks lanefs_iomap_checks;
extern const struct iomap_ops lanefs_iomap_ops;
int lanefs_redirty_block(struct inode *inode, loff_t pos);
extern const struct iomap_ops lanefs_seek_ops;
int lanefs_error_remove(struct address_space *mapping, struct folio *folio);
int lanefs_data_alloc(struct inode *inode, u64 count, bool ahead, struct lanefs_map *map, u32 *seq);
int lanefs_io_ended(struct inode *inode, loff_t offset, size_t size, bool unwritten, bool grows);
void lanefs_io_work(struct work_struct *work);

/* delalloc.c */
/* Whether a write needs a reservation: to a hole, and in a log to a written block. */
static inline bool lanefs_delalloc_wanted(const struct inode *inode, const struct lanefs_map *map)
{
	return !map->block || (lanefs_is_log(inode->i_sb) && !map->unwritten);
}

struct lanefs_domain *lanefs_delalloc_use(struct inode *inode, u64 logical);
void lanefs_delalloc_cancel(struct inode *inode, u64 logical);
u64 lanefs_delalloc_lend(struct lanefs_handle *h, struct inode *inode);
void lanefs_delalloc_return(struct lanefs_handle *h, struct inode *inode, u64 lent);
void lanefs_delalloc_release_excess(struct inode *inode);
void lanefs_delalloc_clip(struct inode *inode, struct lanefs_map *map, u64 end);
int lanefs_delalloc_reserve(struct inode *inode, u64 count, bool fault, struct lanefs_map *map, u32 *seq);
int lanefs_delalloc_reserve_range(struct inode *inode, u64 at, u64 end);
void lanefs_delalloc_drop(struct inode *inode, u64 from, u64 to);
void lanefs_delalloc_undo(struct inode *inode, u64 from, u64 to);
void lanefs_delalloc_undo_locked(struct inode *inode, u64 from, u64 to);
int lanefs_delalloc_allocate(struct inode *inode, struct lanefs_map *map, u32 *seq);
void lanefs_delalloc_check(struct lanefs_sb *sbi);
void lanefs_delalloc_evict(struct inode *inode);

/* holes.c */
u64 lanefs_prealloc_blocks(const struct inode *inode, const struct lanefs_map *map, u64 count);
int lanefs_fill_hole(struct lanefs_handle *h, struct inode *inode, struct lanefs_domain *domain,
		     u64 want, struct lanefs_map *map);

/* rewrite.c */
int lanefs_rewrite(struct inode *inode, struct lanefs_map *map);
bool lanefs_rewrite_more(const struct lanefs_handle *h);
int lanefs_rewrite_map(struct lanefs_handle *h, struct inode *inode, struct lanefs_domain *domain,
		       const struct lanefs_map *map);
int lanefs_rewritten(struct inode *inode, loff_t offset, size_t size, u64 block, int err);

/* overwrite.c */
ssize_t lanefs_overwrite(struct kiocb *iocb, struct iov_iter *from);

/* readpath.c */
int lanefs_readpath_init(void);
void lanefs_readpath_exit(void);
void lanefs_count_cached(struct inode *inode);
ssize_t lanefs_read_shared(struct kiocb *iocb, struct iov_iter *to);

/* writeout.c */
void lanefs_writeout(struct inode *inode, loff_t start, loff_t end);
void lanefs_writeout_wait(struct inode *inode, loff_t start, loff_t end);
int lanefs_writeout_range(struct inode *inode, loff_t start, loff_t end, bool wait);
void lanefs_writeout_wait_all(struct lanefs_sb *sbi);

/* fallocate.c */
long lanefs_fallocate(struct file *file, int mode, loff_t offset, loff_t length);

/* shift.c */
int lanefs_map_find_shifted(struct inode *inode, u64 logical, struct lanefs_map *map);
int lanefs_collapse_range(struct inode *inode, loff_t start, loff_t end);
int lanefs_insert_range(struct inode *inode, loff_t start, loff_t end);
int lanefs_shift_recover(struct inode *inode);

/* fiemap.c */
int lanefs_fiemap(struct inode *inode, struct fiemap_extent_info *info, u64 start, u64 length);

/* free.c */
int lanefs_free_range(struct inode *inode, u64 from, u64 to);
int lanefs_free_extents(struct inode *inode, u64 from, u64 to);
int lanefs_free_past_end(struct inode *inode);
void lanefs_free_on_close(struct inode *inode);
int lanefs_size_journal(struct inode *inode, loff_t size);
int lanefs_truncate_blocks(struct inode *inode, loff_t size);

/* evict.c */
void lanefs_evict_inode(struct inode *inode);

/* orphans.c */
int lanefs_orphans_process(struct lanefs_sb *sbi);

/* gc.c */
int lanefs_gc_start(struct lanefs_domain *domain);
void lanefs_gc_stop(struct lanefs_domain *domain);
void lanefs_gc_allow(struct lanefs_sb *sbi, bool allowed);

#endif
