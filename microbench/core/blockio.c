// SPDX-License-Identifier: GPL-2.0-only
#include "blockio.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "files.h"

/* Direct I/O wants buffers aligned to the device's logical block; none is larger. */
#define BUFFER_ALIGN 4096

const struct option_desc block_options[] = { BLOCK_OPTION, { .name = NULL } };

static enum outcome not_direct(struct worker *w, const struct blockio *io)
{
	errno = EOPNOTSUPP;
	return worker_unsupported(w, "open(O_DIRECT)", io->path);
}

/*
 * Some take O_DIRECT and go through the page cache nevertheless, as ext4 does with
 * data=journal: statx(2) says that there is no alignment at which they are direct. A
 * file whose data is kept in its inode is not direct either until it has grown, so
 * one with data is asked.
 */
static enum outcome check_alignment(struct worker *w, const struct blockio *io)
{
	static const char data[BUFFER_ALIGN];
	enum outcome outcome = OP_OK;
	struct statx stx = { 0 };
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "direct-%u", w->id);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return worker_fail(w, "open", path);
	if (write(fd, data, sizeof(data)) != (ssize_t)sizeof(data))
		outcome = worker_fail(w, "write", path);
	else if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx))
		outcome = worker_fail(w, "statx", path);
	else if ((stx.stx_mask & STATX_DIOALIGN) && !stx.stx_dio_offset_align)
		outcome = not_direct(w, io);
	close(fd);
	if (unlink(path) && !outcome)
		outcome = worker_fail(w, "unlink", path);
	return outcome;
}

/* tmpfs takes O_DIRECT since Linux 6.6, but has no device that it could be direct to. */
static enum outcome check_direct(struct worker *w, const struct blockio *io)
{
	struct statfs fs;

	if (w->mode != MODE_DIRECT)
		return OP_OK;
	if (fstatfs(io->fd, &fs))
		return worker_fail(w, "fstatfs", io->path);
	if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		return not_direct(w, io);
	return check_alignment(w, io);
}

enum outcome block_open(struct worker *w, struct blockio *io, const char *path, int flags)
{
	int rc;

	*io = (struct blockio){ .size = (size_t)option_number(w, "block") };
	snprintf(io->path, sizeof(io->path), "%s", path);
	if (w->mode == MODE_DIRECT)
		flags |= O_DIRECT;
	if (w->mode == MODE_DONTCACHE)
		io->rwf = RWF_DONTCACHE;
	io->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0644);
	if (io->fd < 0 && errno == EINVAL && w->mode == MODE_DIRECT)
		return worker_unsupported(w, "open(O_DIRECT)", path);
	if (io->fd < 0)
		return worker_fail(w, "open", path);
	rc = posix_memalign(&io->buf, BUFFER_ALIGN, io->size);
	if (rc) {
		errno = rc;
		return worker_fail(w, "posix_memalign", NULL);
	}
	memset(io->buf, 'a' + (int)(w->id % 26), io->size);
	io->iov = (struct iovec){ .iov_base = io->buf, .iov_len = io->size };
	return check_direct(w, io);
}

enum outcome block_open_private(struct worker *w, struct blockio *io, unsigned int id, int flags)
{
	char path[sizeof(io->path)];

	snprintf(path, sizeof(path), "%u", id);
	if (dir_make(w, path))
		return OP_FAILED;
	snprintf(path, sizeof(path), "%u/data", id);
	return block_open(w, io, path, flags);
}

enum outcome block_flush(struct worker *w, struct blockio *io)
{
	int rc;

	if (block_sync(w, io))
		return OP_FAILED;
	if (w->mode == MODE_BUFFERED)
		return OP_OK;
	rc = posix_fadvise(io->fd, 0, 0, POSIX_FADV_DONTNEED);
	if (rc) {
		errno = rc;
		return worker_fail(w, "posix_fadvise", io->path);
	}
	return OP_OK;
}

enum outcome block_lay_out(struct worker *w, struct blockio *io)
{
	return block_write(w, io) ? OP_FAILED : block_flush(w, io);
}

enum outcome block_failed(struct worker *w, const struct blockio *io, const char *call, ssize_t done)
{
	if (done < 0 && w->mode != MODE_BUFFERED && (errno == EINVAL || errno == EOPNOTSUPP))
		return worker_unsupported(w, call, io->path);
	return worker_short(w, call, io->path, done, (long)io->size);
}
