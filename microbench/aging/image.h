/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The image of a device: a sparse file with what was written to the device since image_fill(), and after
 * it, as text, the size of the device and the ranges that were written. Only these are restored, as a
 * file system depends on nothing that neither mkfs nor the kernel wrote.
 *
 * Each function prints what failed and returns false.
 */
#ifndef FSCALE_AGING_IMAGE_H
#define FSCALE_AGING_IMAGE_H

#include <stdbool.h>

bool image_fill(const char *device);
bool image_save(const char *device, const char *image);
bool image_restore(const char *image, const char *device);

#endif
