// SPDX-License-Identifier: GPL-2.0-only
#include "statmount.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* Ids of mounts that are not used again, which statmount() takes. */
#define MOUNT_ID_UNIQUE 0x4000u

enum outcome statmount_prepare(struct worker *w, struct statmount_request *request, const char *path)
{
	struct statmount_report report = { 0 };
	struct statx stx;

	if (statx(AT_FDCWD, path, 0, MOUNT_ID_UNIQUE, &stx))
		return worker_fail(w, "statx", path);
	*request = (struct statmount_request){
		.size = sizeof(*request), .mount = stx.stx_mnt_id, .wanted = STATMOUNT_WANTED,
	};
	errno = ENOSYS;
	if (!(stx.stx_mask & MOUNT_ID_UNIQUE))
		return worker_unsupported(w, "statx(STATX_MNT_ID_UNIQUE)", path);
	if (syscall(SYS_statmount, request, &report, sizeof(report), 0))
		return kernel_refuses() ? worker_unsupported(w, "statmount", path) :
					  worker_fail(w, "statmount", path);
	errno = EIO;
	if (report.mount != request->mount || (report.mask & STATMOUNT_WANTED) != STATMOUNT_WANTED)
		return worker_fail(w, "statmount", path);
	return OP_OK;
}
