/* SPDX-License-Identifier: GPL-2.0-only */
/* Every difference between iomap in the kernels that lanefs builds for (compat.h). */
#ifndef LANEFS_COMPAT_IOMAP_H
#define LANEFS_COMPAT_IOMAP_H

#include <linux/iomap.h>
#include <linux/version.h>

/*
 * The operations that check for a stale mapping before a folio is written to. Mappings had them; now
 * who writes passes them on.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define lanefs_iomap_checks iomap_page_ops
#define lanefs_iomap_set_checks(iomap, checks) ((iomap)->page_ops = (checks))
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define lanefs_iomap_checks iomap_folio_ops
#define lanefs_iomap_set_checks(iomap, checks) ((iomap)->folio_ops = (checks))
#else
#define lanefs_iomap_checks iomap_write_ops
#define lanefs_iomap_set_checks(iomap, checks) ((void)(iomap), (void)(checks))
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
/* The fourth argument came in 6.13, and in updates of 6.12. */
typedef ssize_t (*lanefs_write3_fn)(struct kiocb *, struct iov_iter *, const struct iomap_ops *);
typedef ssize_t (*lanefs_write4_fn)(struct kiocb *, struct iov_iter *, const struct iomap_ops *,
				    void *);

static inline ssize_t lanefs_write3(lanefs_write3_fn write, struct kiocb *iocb,
				    struct iov_iter *from, const struct iomap_ops *ops)
{
	return write(iocb, from, ops);
}

static inline ssize_t lanefs_write4(lanefs_write4_fn write, struct kiocb *iocb,
				    struct iov_iter *from, const struct iomap_ops *ops)
{
	return write(iocb, from, ops, NULL);
}

#define lanefs_iomap_write(iocb, from, ops, checks)					\
	_Generic(&iomap_file_buffered_write,						\
		 lanefs_write3_fn: lanefs_write3((void *)iomap_file_buffered_write, iocb, from,	\
						 ops),					\
		 lanefs_write4_fn: lanefs_write4((void *)iomap_file_buffered_write, iocb, from,	\
						 ops))

#else
#define lanefs_iomap_write(iocb, from, ops, checks) \
	iomap_file_buffered_write(iocb, from, ops, checks, NULL)
#endif

/* Whether iomap or the file system moves the file position after a buffered write. */
static inline ssize_t lanefs_buffered_write(struct kiocb *iocb, struct iov_iter *from,
					    const struct iomap_ops *ops,
					    const struct lanefs_iomap_checks *checks)
{
	ssize_t written = lanefs_iomap_write(iocb, from, ops, checks);

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	if (written > 0)
		iocb->ki_pos += written;
#endif
	return written;
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define lanefs_iomap_unshare(inode, pos, length, ops, checks) \
	iomap_file_unshare(inode, pos, length, ops)
#else
#define lanefs_iomap_unshare iomap_file_unshare
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#define lanefs_iomap_mkwrite(fault, ops) iomap_page_mkwrite(fault, ops)
#define lanefs_iomap_zero(inode, pos, length, ops, checks) \
	iomap_zero_range(inode, pos, length, NULL, ops)
#else
#define lanefs_iomap_mkwrite(fault, ops) iomap_page_mkwrite(fault, ops, NULL)
#define lanefs_iomap_zero(inode, pos, length, ops, checks) \
	iomap_zero_range(inode, pos, length, NULL, ops, checks, NULL)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
#define lanefs_iomap_read_folio iomap_read_folio
#define lanefs_iomap_readahead iomap_readahead
#else
static inline int lanefs_iomap_read_folio(struct folio *folio, const struct iomap_ops *ops)
{
	iomap_bio_read_folio(folio, ops);
	return 0;
}

#define lanefs_iomap_readahead iomap_bio_readahead
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define lanefs_dirty_folio filemap_dirty_folio
#else
#define lanefs_dirty_folio iomap_dirty_folio
#endif

/* An I/O end's bio was a pointer, and the way back from the bio its private field. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define lanefs_ioend_bio(ioend) ((ioend)->io_bio)

static inline struct iomap_ioend *lanefs_ioend_of(struct bio *bio)
{
	return bio->bi_private;
}
#else
#define lanefs_ioend_bio(ioend) (&(ioend)->io_bio)

static inline struct iomap_ioend *lanefs_ioend_of(struct bio *bio)
{
	return iomap_ioend_from_bio(bio);
}
#endif

/* An I/O end is of mapped blocks: written ones, or ones that it makes written. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define lanefs_ioend_unwritten(ioend) ((ioend)->io_type == IOMAP_UNWRITTEN)
#else
#define lanefs_ioend_unwritten(ioend) (((ioend)->io_flags & IOMAP_IOEND_UNWRITTEN) != 0)
#endif

/* What lanefs does at writeback (data.c), and how the kernel is told to call it. */
int lanefs_map_blocks(struct iomap_writepage_ctx *wpc, struct inode *inode, loff_t offset);
void lanefs_discard_folio(struct folio *folio, loff_t pos);
int lanefs_prepare_ioend(struct iomap_ioend *ioend, int status);

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define lanefs_map_range lanefs_map_blocks
#else
static inline int lanefs_map_range(struct iomap_writepage_ctx *wpc, struct inode *inode,
				   loff_t offset, unsigned int length)
{
	return lanefs_map_blocks(wpc, inode, offset);
}
#endif

static inline int lanefs_iomap_writepages(struct address_space *mapping,
					  struct writeback_control *wbc,
					  struct iomap_writepage_ctx *wpc)
{
	static const struct iomap_writeback_ops ops = {
		.map_blocks = lanefs_map_range,
		.discard_folio = lanefs_discard_folio,
		.prepare_ioend = lanefs_prepare_ioend,
	};

	return iomap_writepages(mapping, wbc, wpc, &ops);
}
#else
static inline ssize_t lanefs_writeback_range(struct iomap_writepage_ctx *wpc, struct folio *folio,
					     u64 offset, unsigned int length, u64 end)
{
	ssize_t done = lanefs_map_blocks(wpc, wpc->inode, offset);

	if (!done)
		done = iomap_add_to_ioend(wpc, folio, offset, end, length);
	if (done < 0)
		lanefs_discard_folio(folio, offset);
	return done;
}

static inline int lanefs_writeback_submit(struct iomap_writepage_ctx *wpc, int error)
{
	return iomap_ioend_writeback_submit(wpc, lanefs_prepare_ioend(wpc->wb_ctx, error));
}

static inline int lanefs_iomap_writepages(struct address_space *mapping,
					  struct writeback_control *wbc,
					  struct iomap_writepage_ctx *wpc)
{
	static const struct iomap_writeback_ops ops = {
		.writeback_range = lanefs_writeback_range,
		.writeback_submit = lanefs_writeback_submit,
	};

	wpc->inode = mapping->host;
	wpc->wbc = wbc;
	wpc->ops = &ops;
	return iomap_writepages(wpc);
}
#endif

#endif
