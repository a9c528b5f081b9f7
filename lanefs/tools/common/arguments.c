// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"
#include "die.h"

void die_usage(int code)
{
	fprintf(stderr, "Try %s --help.\n", program_invocation_short_name);
	exit(code);
}

const char *only_operand(int code, int argc, char **argv)
{
	if (argc - optind != 1)
		die(code, "give one device or file; there are %d. Try --help", argc - optind);
	return argv[optind];
}

void die_open(int code, const char *path, int error)
{
	if (error == -EBUSY)
		die(code, "%s is in use: it is mounted, or part of another device", path);
	if (error == -ENOTBLK)
		die(code, "%s is neither a block device nor a regular file", path);
	die(code, "cannot open %s: %s", path, strerror(-error));
}
