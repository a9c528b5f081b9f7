/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes a block device equal to an image: writes the data and zeroes what is a hole in the image. Prints
 * what failed and returns false.
 */
#ifndef FSCALE_AGING_RESTORE_H
#define FSCALE_AGING_RESTORE_H

#include <stdbool.h>

bool restore(const char *image, const char *device);

#endif
