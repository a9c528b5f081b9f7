/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_FSCK_REPORT_H
#define LANEFS_FSCK_REPORT_H

#include <stdbool.h>
#include <stdint.h>

/* Exit codes of fsck(8); they add up. */
enum {
	FSCK_CLEAN = 0,
	FSCK_REPAIRED = 1,
	FSCK_DAMAGED = 4,
	FSCK_FAILED = 8,
	FSCK_USAGE = 16,
	FSCK_CANCELLED = 32,
};

/* The findings. The next round checks whether the repairs succeeded. */
struct report {
	bool repair;
	uint64_t found;		/* in this round */
	uint64_t repaired;	/* in all */
};

/*
 * Reports a problem that the caller can repair; returns whether it is to repair it.
 */
__attribute__((format(printf, 2, 3))) bool can_repair(struct report *report, const char *format, ...);

/* Reports a problem for which there is no repair; the text says why where it is not plain. */
__attribute__((format(printf, 2, 3))) void cannot_repair(struct report *report, const char *format,
							...);

/* The exit code, if the last round is over. */
int report_code(const struct report *report);

#endif
