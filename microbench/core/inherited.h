/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The object that the workers of a primitive contend for: an open file of no file system under
 * test, which they inherit, so that they share its struct file as well as its inode.
 */
#ifndef FSCALE_INHERITED_H
#define FSCALE_INHERITED_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "workload.h"

static int inherited_file;

/* In the parent, before the first worker is forked. */
static inline const char *inherited_open(const char *dir)
{
	(void)dir;
	inherited_file = memfd_create("fscale-primitive", MFD_CLOEXEC);
	return inherited_file < 0 ? "memfd_create" : NULL;
}

#endif
