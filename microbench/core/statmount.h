/* SPDX-License-Identifier: GPL-2.0-only */
/* statmount(2), of Linux 6.8, which the headers of older systems lack; its structures are the kernel's. */
#ifndef FSCALE_STATMOUNT_H
#define FSCALE_STATMOUNT_H

#include <sys/syscall.h>
#include <unistd.h>

#include "workload.h"

#ifndef SYS_statmount
#define SYS_statmount 457
#endif

/* STATMOUNT_SB_BASIC and STATMOUNT_MNT_BASIC: the super block, the mount. */
#define STATMOUNT_WANTED 3u

struct statmount_request {
	uint32_t size, spare;
	uint64_t mount, wanted;
};

struct statmount_report {
	uint32_t size, options;
	uint64_t mask;
	uint32_t major, minor;
	uint64_t magic;
	uint32_t flags, type;
	uint64_t mount;
	uint64_t others[58];
};

/*
 * Look up the unique id of the mount that contains `path`, and describe it once. The run is skipped
 * if the kernel has no statmount(2).
 */
enum outcome statmount_prepare(struct worker *w, struct statmount_request *request, const char *path);

static inline enum outcome statmount_describe(struct worker *w,
					      const struct statmount_request *request,
					      struct statmount_report *report)
{
	return syscall(SYS_statmount, request, report, sizeof(*report), 0) ?
	       worker_fail(w, "statmount", NULL) : OP_OK;
}

#endif
