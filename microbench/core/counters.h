/* SPDX-License-Identifier: GPL-2.0-only */
/* Files that hold a growing number each, such as a file system's in sysfs: by how much it grew. */
#ifndef FSCALE_COUNTERS_H
#define FSCALE_COUNTERS_H

#include "bench.h"

/* Take the numbers as they are before the windows. */
enum step counters_begin(struct bench *b);
/* Replace them by what they have grown by. */
enum step counters_end(struct bench *b);

#endif
