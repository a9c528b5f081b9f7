/* SPDX-License-Identifier: GPL-2.0-only */
/* Reading and writing one block of a file in the three modes. */
#ifndef FSCALE_BLOCKIO_H
#define FSCALE_BLOCKIO_H

#include <stdio.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "workload.h"

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x00000080	/* Linux 6.14 */
#endif

#define BLOCK_OPTION								\
	{ .name = "block", .help = "bytes per operation", .value = 4096, \
	  .min = 512, .max = 1 << 20, .multiple_of = 512 }

extern const struct option_desc block_options[];

struct blockio {
	int fd;
	int rwf;		/* RWF_DONTCACHE or 0 */
	void *buf;
	size_t size;
	off_t offset;
	struct iovec iov;
	char path[32];
};

/* The offset of a worker's own block in the shared file. */
static inline off_t block_offset(unsigned int id, size_t size)
{
	return (off_t)id * (off_t)size;
}

/* Open (and create) `path` as the mode asks, with a buffer of one block; offset is 0. */
enum outcome block_open(struct worker *w, struct blockio *io, const char *path, int flags);
/* "<id>/data", with its directory. */
enum outcome block_open_private(struct worker *w, struct blockio *io, unsigned int id, int flags);
/* Write the block at io->offset so that it is really allocated. */
enum outcome block_lay_out(struct worker *w, struct blockio *io);
/* Reach the medium; in the modes that bypass the page cache, leave it empty. */
enum outcome block_flush(struct worker *w, struct blockio *io);
/* Record a failed or short call; one that the mode does not allow skips the run. */
enum outcome block_failed(struct worker *w, const struct blockio *io, const char *call, ssize_t done);

static inline enum outcome block_read(struct worker *w, const struct blockio *io)
{
	ssize_t n = io->rwf ? preadv2(io->fd, &io->iov, 1, io->offset, io->rwf) :
			      pread(io->fd, io->buf, io->size, io->offset);

	if (__builtin_expect(n != (ssize_t)io->size, 0))
		return block_failed(w, io, io->rwf ? "preadv2" : "pread", n);
	return OP_OK;
}

static inline enum outcome block_write(struct worker *w, const struct blockio *io)
{
	ssize_t n = io->rwf ? pwritev2(io->fd, &io->iov, 1, io->offset, io->rwf) :
			      pwrite(io->fd, io->buf, io->size, io->offset);

	if (__builtin_expect(n != (ssize_t)io->size, 0))
		return block_failed(w, io, io->rwf ? "pwritev2" : "pwrite", n);
	return OP_OK;
}

/* At the end of a file that was opened with O_APPEND. */
static inline enum outcome block_append(struct worker *w, const struct blockio *io)
{
	ssize_t n = io->rwf ? pwritev2(io->fd, &io->iov, 1, -1, io->rwf) :
			      write(io->fd, io->buf, io->size);

	if (__builtin_expect(n != (ssize_t)io->size, 0))
		return block_failed(w, io, io->rwf ? "pwritev2" : "write", n);
	return OP_OK;
}

static inline enum outcome block_sync(struct worker *w, const struct blockio *io)
{
	return fsync(io->fd) ? worker_fail(w, "fsync", io->path) : OP_OK;
}

static inline enum outcome block_truncate(struct worker *w, const struct blockio *io, off_t size)
{
	return ftruncate(io->fd, size) ? worker_fail(w, "ftruncate", io->path) : OP_OK;
}

#endif
