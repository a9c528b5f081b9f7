/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_TOOLS_DEVICE_H
#define LANEFS_TOOLS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block device or a regular file that holds a file system. */
struct device {
	const char *path;
	int fd;
	bool block;	/* a block device */
	uint64_t size;	/* bytes */
};

/*
 * Opens @path. For writing, a block device that is mounted or otherwise held
 * is refused with -EBUSY. Returns 0 or a negative errno; -ENOTBLK for what is
 * neither a block device nor a regular file.
 */
int device_open(struct device *device, const char *path, bool write);

/* Whole transfers: 0, or a negative errno, -EIO at the end of the device. */
int device_read(const struct device *device, void *data, size_t size, uint64_t offset);
int device_write(const struct device *device, const void *data, size_t size, uint64_t offset);

int device_sync(const struct device *device);
void device_close(struct device *device);

#endif
