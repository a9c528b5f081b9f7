/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FSCALE_SIM_TESTS_RULES_FILE_H
#define FSCALE_SIM_TESTS_RULES_FILE_H

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../tests/check.h"

/* A file of this process with `text` in it; its path, which is the same each time. */
static char *rules_file(const char *text)
{
	static char path[32];
	static int file = -1;

	if (file >= 0)
		close(file);
	file = memfd_create("rules", MFD_CLOEXEC);
	CHECK(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	return path;
}

#endif
