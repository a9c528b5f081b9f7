/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_MKFS_GEOMETRY_H
#define LANEFS_MKFS_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

/* The values that the user gave; 0: choose. */
struct wishes {
	uint64_t domains;
	uint64_t inodes;		/* of the whole file system */
	uint64_t journal_blocks;	/* of each domain */
	bool log;			/* log-structured allocation */
};

struct geometry {
	uint64_t incompat;	/* as sb_incompat */
	uint64_t blocks;
	uint64_t domain_start;
	uint64_t domain_blocks;
	uint64_t domain_inodes;
	uint32_t domains;
	uint32_t journal_blocks;
	uint32_t span_dirs;
};

/* Cuts a device of @size bytes for a machine of @cpus CPUs, or ends the program with the reason. */
void choose_geometry(struct geometry *geometry, uint64_t size, const struct wishes *wishes,
		     long cpus);

#endif
