/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ages the file system at a directory: fills it, then replaces files by others, and looks how files and
 * free space lie after each of the two.
 *
 * Space is allocated by fallocate(2), as Geriatrix does (Kadekodi et al., USENIX ATC 2018): the layout
 * is that of files of these sizes, but no data is written. Where that gives blocks no place before they
 * are written (F2FS), zeros are written.
 */
#ifndef FSCALE_AGING_AGE_H
#define FSCALE_AGING_AGE_H

#include <stdbool.h>

#include "layout.h"
#include "profile.h"

struct aged {
	struct layout filled, aged;
};

/* Prints what failed and returns false. `progress` is a file for the part that is done, or NULL. */
bool age(const struct profile *profile, const char *directory, const char *progress,
	 struct aged *aged);

#endif
