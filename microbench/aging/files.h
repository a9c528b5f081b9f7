/* SPDX-License-Identifier: GPL-2.0-only */
/* The files that are there, ordered by when they are to be deleted; the first one is the next. */
#ifndef FSCALE_AGING_FILES_H
#define FSCALE_AGING_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file {
	double death;
	uint64_t number, bytes;
	unsigned int level, directory;
};

struct files {
	struct file *heap;
	size_t count, room;
};

bool files_add(struct files *files, struct file file);	/* false: no memory */
struct file files_take_first(struct files *files);

#endif
