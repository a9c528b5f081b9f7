// SPDX-License-Identifier: GPL-2.0-only
#include "restore.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (1 << 20)

/* The image and the device. */
struct copy {
	int from, to;
};

/* Nothing is discarded: a later write would have to find memory for a hole of a medium in memory. */
static const char *zero(const struct copy *copy, off_t begin, off_t end)
{
	uint64_t range[2] = { (uint64_t)begin, (uint64_t)(end - begin) };

	return begin < end && ioctl(copy->to, BLKZEROOUT, range) ? "BLKZEROOUT" : NULL;
}

static const char *write_data(const struct copy *copy, off_t begin, off_t end)
{
	static char bytes[CHUNK];

	while (begin < end) {
		size_t most = end - begin < CHUNK ? (size_t)(end - begin) : CHUNK;
		ssize_t count = pread(copy->from, bytes, most, begin);

		if (count <= 0)
			return "pread";
		if (pwrite(copy->to, bytes, (size_t)count, begin) != count)
			return "pwrite";
		begin += count;
	}
	return NULL;
}

static const char *copy_all(const struct copy *copy)
{
	const char *failed = NULL;
	uint64_t size;
	struct stat image;
	off_t at = 0;

	if (fstat(copy->from, &image))
		return "fstat";
	if (ioctl(copy->to, BLKGETSIZE64, &size))
		return "BLKGETSIZE64";
	if (size != (uint64_t)image.st_size) {
		errno = EINVAL;
		return "the image has another size than";
	}
	while (!failed && at < image.st_size) {
		off_t data = lseek(copy->from, at, SEEK_DATA), hole;

		if (data < 0 && errno != ENXIO)
			return "lseek";
		if (data < 0)
			data = image.st_size;
		failed = zero(copy, at, data);
		at = data;
		if (failed || data == image.st_size)
			break;
		hole = lseek(copy->from, data, SEEK_HOLE);
		if (hole < 0)
			return "lseek";
		failed = write_data(copy, data, hole);
		at = hole;
	}
	return !failed && fsync(copy->to) ? "fsync" : failed;
}

bool restore(const char *image, const char *device)
{
	struct copy copy = { open(image, O_RDONLY | O_CLOEXEC), -1 };
	const char *failed = "open", *what = image;

	if (copy.from >= 0) {
		what = device;
		copy.to = open(device, O_WRONLY | O_EXCL | O_CLOEXEC);
		if (copy.to >= 0)
			failed = copy_all(&copy);
	}
	if (failed)
		fprintf(stderr, "fscale-age: %s %s: %s\n", failed, what, strerror(errno));
	if (copy.to >= 0)
		close(copy.to);
	if (copy.from >= 0)
		close(copy.from);
	return !failed;
}
