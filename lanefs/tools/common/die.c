// SPDX-License-Identifier: GPL-2.0-only
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <errno.h>

#include "die.h"

int die_memory_code = 1;

void die(int code, const char *format, ...)
{
	va_list arguments;

	fflush(stdout);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(code);
}

void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (!memory)
		die(die_memory_code, "out of memory (%zu times %zu bytes)", count, size);
	return memory;
}

void *reallocate(void *old, size_t count, size_t size)
{
	void *memory = reallocarray(old, count ? count : 1, size);

	if (!memory)
		die(die_memory_code, "out of memory (%zu times %zu bytes)", count, size);
	return memory;
}
