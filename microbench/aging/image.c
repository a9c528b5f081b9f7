// SPDX-License-Identifier: GPL-2.0-only
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BLOCK 4096
#define CHUNK (1 << 20)
#define PATTERN 0x5ca1e0a6	/* of a block that was not written */

static char bytes[CHUNK], pattern[CHUNK];
static const char zeros[BLOCK];

static bool failed(const char *call, const char *what)
{
	fprintf(stderr, "fscale-age: %s %s: %s\n", call, what, strerror(errno));
	return false;
}

static void make_pattern(void)
{
	uint32_t value = PATTERN;

	for (size_t i = 0; i < CHUNK; i += sizeof(value))
		memcpy(pattern + i, &value, sizeof(value));
}

/* Open a device; *size is its size in bytes. */
static int open_device(const char *device, int flags, uint64_t *size)
{
	int fd = open(device, flags | O_CLOEXEC);

	if (fd < 0) {
		failed("open", device);
	} else if (ioctl(fd, BLKGETSIZE64, size)) {
		failed("BLKGETSIZE64", device);
		close(fd);
		return -1;
	}
	return fd;
}

static size_t chunk(uint64_t at, uint64_t end)
{
	return end - at < CHUNK ? (size_t)(end - at) : CHUNK;
}

static bool fill(int fd, uint64_t size)
{
	make_pattern();
	for (uint64_t at = 0; at < size; at += CHUNK)
		if (pwrite(fd, pattern, chunk(at, size), (off_t)at) != (ssize_t)chunk(at, size))
			return false;
	return !fsync(fd);
}

bool image_fill(const char *device)
{
	uint64_t size;
	int fd = open_device(device, O_WRONLY | O_EXCL, &size);
	bool done = fd >= 0 && fill(fd, size);

	if (fd >= 0 && !done)
		failed("pwrite", device);
	if (fd >= 0)
		close(fd);
	return done;
}

/* Copy a block that was written; zeros stay a hole. */
static bool save_block(FILE *image, const char *block, size_t length, uint64_t at)
{
	return !memcmp(block, zeros, length) ||
	       pwrite(fileno(image), block, length, (off_t)at) == (ssize_t)length;
}

static bool save(int fd, uint64_t size, FILE *image)
{
	uint64_t begin = 0;	/* of the blocks up to this one, which were written */

	make_pattern();
	if (fseeko(image, (off_t)size, SEEK_SET) || fprintf(image, "%llu\n", (unsigned long long)size) < 0)
		return false;
	for (uint64_t at = 0; at < size; at += CHUNK) {
		size_t count = chunk(at, size);

		if (pread(fd, bytes, count, (off_t)at) != (ssize_t)count)
			return false;
		for (size_t i = 0; i < count; i += BLOCK) {
			size_t length = count - i < BLOCK ? count - i : BLOCK;

			if (memcmp(bytes + i, pattern, length)) {
				if (!save_block(image, bytes + i, length, at + i))
					return false;
				continue;
			}
			if (begin < at + i)
				fprintf(image, "%llu %llu\n", (unsigned long long)begin,
					(unsigned long long)(at + i));
			begin = at + i + length;
		}
	}
	if (begin < size)
		fprintf(image, "%llu %llu\n", (unsigned long long)begin, (unsigned long long)size);
	return !fflush(image) && !ferror(image) && !fsync(fileno(image));
}

bool image_save(const char *device, const char *image)
{
	uint64_t size;
	int fd = open_device(device, O_RDONLY, &size);
	FILE *file = fd < 0 ? NULL : fopen(image, "we");
	bool done = file && save(fd, size, file);

	if (fd >= 0 && !done)
		failed("write", image);
	if (file && fclose(file) && done)
		done = failed("close", image);
	if (fd >= 0)
		close(fd);
	return done;
}

static bool write_data(int from, int to, uint64_t begin, uint64_t end)
{
	while (begin < end) {
		ssize_t count = pread(from, bytes, chunk(begin, end), (off_t)begin);

		if (count <= 0 || pwrite(to, bytes, (size_t)count, (off_t)begin) != count)
			return false;
		begin += (uint64_t)count;
	}
	return true;
}

/* Where the next data or hole at `at` or after it begins, and at most `end`. */
static uint64_t seek(int fd, uint64_t at, int whence, uint64_t end)
{
	off_t found = lseek(fd, (off_t)at, whence);

	return found < 0 || (uint64_t)found > end ? end : (uint64_t)found;
}

/* Nothing is discarded: a later write would have to find memory for a hole of a medium in memory. */
static bool restore_range(int from, int to, uint64_t at, uint64_t end)
{
	while (at < end) {
		uint64_t data = seek(from, at, SEEK_DATA, end);
		uint64_t hole = data < end ? seek(from, data, SEEK_HOLE, end) : end;
		uint64_t zero[2] = { at, data - at };

		if (at < data && ioctl(to, BLKZEROOUT, zero))
			return false;
		if (!write_data(from, to, data, hole))
			return false;
		at = hole;
	}
	return true;
}

/* `ranges` and `from` are the same image, because seeking in one would move the other's offset. */
static bool restore(FILE *ranges, int from, int to, uint64_t size)
{
	unsigned long long kept = 0, begin, end;

	if (fseeko(ranges, (off_t)size, SEEK_SET) || fscanf(ranges, "%llu", &kept) != 1 ||
	    kept != size) {
		errno = EINVAL;	/* the image is of another device */
		return false;
	}
	while (fscanf(ranges, "%llu %llu", &begin, &end) == 2)
		if (!restore_range(from, to, begin, end))
			return false;
	return !fsync(to);
}

bool image_restore(const char *image, const char *device)
{
	uint64_t size;
	int fd = open_device(device, O_WRONLY | O_EXCL, &size);
	FILE *ranges = fd < 0 ? NULL : fopen(image, "re");
	int from = ranges ? open(image, O_RDONLY | O_CLOEXEC) : -1;
	bool done = from >= 0 && restore(ranges, from, fd, size);

	if (fd >= 0 && !done)
		failed("restore", image);
	if (from >= 0)
		close(from);
	if (ranges)
		fclose(ranges);
	if (fd >= 0)
		close(fd);
	return done;
}
