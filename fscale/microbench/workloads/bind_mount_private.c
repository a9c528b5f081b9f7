// SPDX-License-Identifier: GPL-2.0-only
#include "../core/namespace.h"
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE], mount_point[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	if (namespace_enter(w))
		return OP_FAILED;
	if (path_private(w, path, "dir") || path_private(w, mount_point, "mnt"))
		return OP_FAILED;
	return dir_make(w, path) ? OP_FAILED : dir_make(w, mount_point);
}

static inline enum outcome operation(struct worker *w)
{
	return bind_mount(w, path, mount_point) ? OP_FAILED : unmount(w, mount_point);
}
DEFINE_LOOPS(operation)

static const struct workload bind_mount_private = {
	.id = "bind_mount_private",
	.title = "Bind-mount and unmount a private directory in a private mount namespace",
	.operation = "mount(\"$ID/dir\", \"$ID/mnt\", MS_BIND); umount",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "namespace_sem, mount_lock, expedited RCU grace periods",
	.setup_text = "$ID/dir/, $ID/mnt/, empty; a mount namespace of each process",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.defers_frees = true,
	.apart = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(bind_mount_private);
