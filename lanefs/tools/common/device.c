// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fs.h>

#include "device.h"

int device_open(struct device *device, const char *path, bool write)
{
	struct stat stat;
	int error;

	if (fstatat(AT_FDCWD, path, &stat, 0))
		return -errno;
	if (!S_ISBLK(stat.st_mode) && !S_ISREG(stat.st_mode))
		return -ENOTBLK;
	device->path = path;
	device->block = S_ISBLK(stat.st_mode);
	/* O_EXCL without O_CREAT: the kernel refuses a device that is mounted. */
	device->fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC |
			  (write && device->block ? O_EXCL : 0));
	if (device->fd < 0)
		return -errno;
	if (device->block) {
		if (ioctl(device->fd, BLKGETSIZE64, &device->size)) {
			error = -errno;
			goto err_close;
		}
	} else {
		device->size = (uint64_t)stat.st_size;
	}
	return 0;

err_close:
	close(device->fd);
	return error;
}

int device_read(const struct device *device, void *data, size_t size, uint64_t offset)
{
	while (size) {
		ssize_t got = pread(device->fd, data, size, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		data = (char *)data + got;
		size -= (size_t)got;
		offset += (uint64_t)got;
	}
	return 0;
}

int device_write(const struct device *device, const void *data, size_t size, uint64_t offset)
{
	while (size) {
		ssize_t put = pwrite(device->fd, data, size, (off_t)offset);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		data = (const char *)data + put;
		size -= (size_t)put;
		offset += (uint64_t)put;
	}
	return 0;
}

int device_sync(const struct device *device)
{
	return fsync(device->fd) ? -errno : 0;
}

void device_close(struct device *device)
{
	close(device->fd);
	device->fd = -1;
}
