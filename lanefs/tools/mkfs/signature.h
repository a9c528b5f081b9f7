/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_MKFS_SIGNATURE_H
#define LANEFS_MKFS_SIGNATURE_H

#include "tools/common/device.h"

/* Ends the program if the device holds anything that libblkid or lanefs knows. */
void refuse_known_content(const struct device *device);

/* Removes the marks of anything that libblkid knows, so that no tool takes the device for it. */
void wipe_signatures(const struct device *device);

#endif
