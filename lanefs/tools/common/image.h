/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_TOOLS_IMAGE_H
#define LANEFS_TOOLS_IMAGE_H

#include "device.h"

/*
 * A file system's blocks. Writes stay in memory until image_commit(), so that
 * a check that must change nothing sees the state after journal replay, and a
 * repair reaches the device only when it is complete.
 */
struct image {
	struct device device;
	size_t block_size;
	uint64_t blocks;	/* whole blocks on the device */
	struct overlay_slot *slots;
	size_t slot_count;	/* a power of two, or 0 */
	size_t changed;		/* blocks in the overlay */
};

/* 0 or a negative errno, as device_open(). */
int image_open(struct image *image, const char *path, bool write, size_t block_size);

/* Copies a block out: 0, -EIO, or -ERANGE behind the end of the device. */
int image_read(struct image *image, uint64_t block, void *data);

/*
 * The same of @count blocks in a row, in one transfer. Several threads may read at the same time, as
 * long as none writes.
 */
int image_read_run(struct image *image, uint64_t block, size_t count, void *data);

/* Replaces a block: 0 or -ERANGE. */
int image_write(struct image *image, uint64_t block, const void *data);

/* The same, and waits until the device has it; other changes stay in memory. */
int image_write_now(struct image *image, uint64_t block, const void *data);

/* Writes all changed blocks in ascending order and waits until the device has them. */
int image_commit(struct image *image);

void image_close(struct image *image);

#endif
