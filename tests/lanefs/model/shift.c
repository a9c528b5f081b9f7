// SPDX-License-Identifier: GPL-2.0-only
/* Ranges taken out of files and put into them, which the reference (tmpfs) has to be helped with. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model.h"

#define BLOCK	4096

/* Bytes that wait to be written elsewhere. */
struct piece {
	struct piece *next;
	off_t offset;
	size_t length;
	unsigned char data[];
};

/* What the kernel says of a range before it looks at the extents. */
static int refused(int mode, off_t offset, off_t length, off_t size)
{
	if ((offset | length) % BLOCK)
		return EINVAL;
	if (mode == FALLOC_FL_COLLAPSE_RANGE)
		return offset + length < size ? 0 : EINVAL;
	return offset < size ? 0 : EINVAL;
}

static struct piece *read_piece(int fd, off_t from, off_t end)
{
	size_t length = end - from < LONGEST ? (size_t)(end - from) : LONGEST;
	struct piece *piece = malloc(sizeof(*piece) + length);
	ssize_t got;

	if (!piece)
		return NULL;
	got = pread(fd, piece->data, length, from);
	if (got <= 0) {
		free(piece);
		return NULL;
	}
	piece->offset = from;
	piece->length = (size_t)got;
	return piece;
}

/* The data from @from to @size, without the holes, which may be very long. -1: an error. */
static int read_pieces(int fd, off_t from, off_t size, struct piece **pieces)
{
	off_t end;

	while (from < size) {
		from = lseek(fd, from, SEEK_DATA);
		if (from < 0)
			return errno == ENXIO ? 0 : -1;
		end = lseek(fd, from, SEEK_HOLE);
		if (end < 0)
			return -1;
		for (; from < end; from += (off_t)(*pieces)->length) {
			struct piece *piece = read_piece(fd, from, end);

			if (!piece)
				return -1;
			piece->next = *pieces;
			*pieces = piece;
		}
	}
	return 0;
}

/* Moves all data from @from on by @by bytes; holes are left where it was. */
static int move_data(int fd, off_t start, off_t from, off_t size, off_t by)
{
	struct piece *pieces = NULL, *piece;
	int result = read_pieces(fd, from, size, &pieces);

	if (result == 0)
		result = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, size - start);
	while ((piece = pieces)) {
		if (result == 0 && pwrite(fd, piece->data, piece->length, piece->offset + by) !=
				   (ssize_t)piece->length)
			result = -1;
		pieces = piece->next;
		free(piece);
	}
	return result == 0 ? ftruncate(fd, size + by) : result;
}

/* As fallocate(2) with one of the two modes. */
static int shift(int fd, int mode, off_t offset, off_t length)
{
	struct stat found;
	int error;

	if (fstat(fd, &found) < 0)
		return -1;
	error = refused(mode, offset, length, found.st_size);
	if (error) {
		errno = error;
		return -1;
	}
	if (mode == FALLOC_FL_COLLAPSE_RANGE)
		return move_data(fd, offset, offset + length, found.st_size, -length);
	return move_data(fd, offset, offset, found.st_size, length);
}

/* The same on a file of the reference; opened anew, as it may be open for appending alone. */
int shift_reference(int open_fd, int mode, off_t offset, off_t length)
{
	char path[64];
	int fd, result, error;

	if ((fcntl(open_fd, F_GETFL) & O_ACCMODE) == O_RDONLY) {
		errno = EBADF;
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", open_fd);
	fd = (int)OF_PROC(open(path, O_RDWR | O_CLOEXEC));
	if (fd < 0)
		return -1;
	result = shift(fd, mode, offset, length);
	error = errno;
	close(fd);
	errno = error;
	return result;
}
