/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_MKFS_WRITE_H
#define LANEFS_MKFS_WRITE_H

#include "geometry.h"
#include "tools/common/device.h"

struct identity {
	uint8_t uuid[16];
	char label[33];
};

/* Writes an empty file system. Block 0 comes last. Ends the program on an error. */
void write_file_system(const struct device *device, const struct geometry *geometry,
		       const struct identity *identity);

#endif
