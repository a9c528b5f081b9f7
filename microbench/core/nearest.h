/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FSCALE_NEAREST_H
#define FSCALE_NEAREST_H

#include <stddef.h>

/* Write the ids of the workloads that are nearest to `id` (edit distance) into `text`. */
void nearest_workloads(const char *id, char *text, size_t size);

#endif
