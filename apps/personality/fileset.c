// SPDX-License-Identifier: GPL-2.0-only
#include "fileset.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DRAWS 64

void fileset_init(struct fileset *set, unsigned int count, unsigned int width)
{
	set->count = count;
	set->width = width;
	set->state = shared_alloc(count);
}

/* The number of directory levels; the root has at most `width` directories. */
static unsigned int levels(const struct fileset *set)
{
	unsigned int n = 0;
	uint64_t directories = (set->count + (uint64_t)set->width - 1) / set->width;

	for (; directories > 1; directories = (directories + set->width - 1) / set->width)
		n++;
	return n;
}

/* "d<a>/d<b>/" for directory number `directory` of the lowest level; returns the length. */
static size_t directory_path(const struct fileset *set, uint64_t directory, unsigned int level,
			     char *path, size_t size)
{
	size_t at = 0;

	if (!level)
		return 0;
	at = directory_path(set, directory / set->width, level - 1, path, size);
	return at + (size_t)snprintf(path + at, size - at, "d%llu/",
				     (unsigned long long)(directory % set->width));
}

void fileset_path(const struct fileset *set, unsigned int index, char *path, size_t size)
{
	size_t at = directory_path(set, index / set->width, levels(set), path, size);

	snprintf(path + at, size - at, "f%u", index % set->width);
}

int fileset_directories(const struct fileset *set, int root, char *path, size_t size)
{
	unsigned int deepest = levels(set), level, up;
	uint64_t number, count;

	for (level = 1; level <= deepest; level++) {
		count = (set->count + (uint64_t)set->width - 1) / set->width;
		for (up = level; up < deepest; up++)
			count = (count + set->width - 1) / set->width;
		for (number = 0; number < count; number++) {
			directory_path(set, number, level, path, size);
			if (mkdirat(root, path, 0755))
				return -1;
		}
	}
	return 0;
}

static bool take(struct fileset *set, unsigned int index, enum file_state from)
{
	unsigned char expected = (unsigned char)from;

	return atomic_compare_exchange_strong(&set->state[index], &expected, FILE_BUSY);
}

long fileset_take(struct fileset *set, enum file_state from, uint64_t *random)
{
	unsigned int i, index = 0;

	for (i = 0; i < DRAWS; i++) {
		index = (unsigned int)draw_below(random, set->count);
		if (take(set, index, from))
			return index;
	}
	for (i = 0; i < set->count; i++)
		if (take(set, (index + i) % set->count, from))
			return (index + i) % set->count;
	return -1;
}

void fileset_put(struct fileset *set, long index, enum file_state to)
{
	atomic_store(&set->state[index], (unsigned char)to);
}
