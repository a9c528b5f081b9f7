// SPDX-License-Identifier: GPL-2.0-only
#include "layout.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fsmap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define EXTENTS 256	/* of one call */
#define RECORDS 1024

const char *layout_add(struct layout *layout, int fd)
{
	static union {
		struct fiemap map;
		char room[sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent)];
	} asked;
	struct fiemap *map = &asked.map;
	uint64_t end = 0, offset = 0, extents = 0;
	bool last = false;

	while (!last) {
		memset(map, 0, sizeof(*map));
		map->fm_start = offset;
		map->fm_length = FIEMAP_MAX_OFFSET - offset;
		map->fm_extent_count = EXTENTS;
		if (ioctl(fd, FS_IOC_FIEMAP, map))
			return "FS_IOC_FIEMAP";
		last = !map->fm_mapped_extents;
		for (uint32_t i = 0; i < map->fm_mapped_extents; i++) {
			const struct fiemap_extent *one = &map->fm_extents[i];

			/* What a file system describes by two records may still be one run of blocks. */
			extents += !extents || one->fe_physical != end;
			end = one->fe_physical + one->fe_length;
			offset = one->fe_logical + one->fe_length;
			layout->bytes += one->fe_length;
			last = one->fe_flags & FIEMAP_EXTENT_LAST;
		}
	}
	layout->files++;
	layout->extents += extents;
	layout->fragmented += extents > 1;
	return NULL;
}

const char *layout_placed(int fd, bool *placed)
{
	union {
		struct fiemap map;
		char room[sizeof(struct fiemap) + sizeof(struct fiemap_extent)];
	} asked = { .map = { .fm_length = FIEMAP_MAX_OFFSET, .fm_flags = FIEMAP_FLAG_SYNC,
			     .fm_extent_count = 1 } };

	if (ioctl(fd, FS_IOC_FIEMAP, &asked.map))
		return "FS_IOC_FIEMAP";
	*placed = asked.map.fm_mapped_extents && asked.map.fm_extents[0].fe_physical;
	return NULL;
}

static void add_run(struct layout *layout, uint64_t bytes)
{
	if (!bytes)
		return;
	layout->free_bytes += bytes;
	layout->free_runs++;
	if (bytes > layout->largest_free_run)
		layout->largest_free_run = bytes;
}

const char *layout_add_free(struct layout *layout, int fd)
{
	struct fsmap_head *head = calloc(1, fsmap_sizeof(RECORDS));
	uint64_t begin = 0, end = 0;
	const char *failed = NULL;
	bool last = false;

	if (!head)
		return "calloc";
	head->fmh_count = RECORDS;
	head->fmh_keys[1] = (struct fsmap){
		.fmr_device = UINT32_MAX, .fmr_flags = UINT32_MAX, .fmr_physical = UINT64_MAX,
		.fmr_owner = UINT64_MAX, .fmr_offset = UINT64_MAX,
	};
	while (!last) {
		if (ioctl(fd, FS_IOC_GETFSMAP, head)) {
			if (errno != ENOTTY && errno != EOPNOTSUPP)
				failed = "FS_IOC_GETFSMAP";
			free(head);
			return failed;
		}
		layout->has_free = true;
		last = !head->fmh_entries;
		for (uint32_t i = 0; i < head->fmh_entries; i++) {
			const struct fsmap *one = &head->fmh_recs[i];

			last = one->fmr_flags & FMR_OF_LAST;
			if (!(one->fmr_flags & FMR_OF_SPECIAL_OWNER) || one->fmr_owner != FMR_OWN_FREE)
				continue;
			/* A run ends where a group ends, but blocks are allocated across that. */
			if (one->fmr_physical != end) {
				add_run(layout, end - begin);
				begin = one->fmr_physical;
			}
			end = one->fmr_physical + one->fmr_length;
		}
		if (!last)
			fsmap_advance(head);
	}
	add_run(layout, end - begin);
	free(head);
	return NULL;
}
