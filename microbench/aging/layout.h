/* SPDX-License-Identifier: GPL-2.0-only */
/* How files and free space lie on the device. */
#ifndef FSCALE_AGING_LAYOUT_H
#define FSCALE_AGING_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct layout {
	uint64_t files, bytes, extents, fragmented;
	bool has_free;		/* false: the file system does not report its free space */
	uint64_t free_bytes, free_runs, largest_free_run;
};

/* Add a file, or the free space. All return NULL, or the call that failed with errno. */
const char *layout_add(struct layout *layout, int fd);
const char *layout_add_free(struct layout *layout, int fd);
/* Whether the first block of a file has a place on the device. */
const char *layout_placed(int fd, bool *placed);

#endif
