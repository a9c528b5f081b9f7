// SPDX-License-Identifier: GPL-2.0-only
#include "../core/namespace.h"
#include "../core/paths.h"

static PER_WORKER char path[PATH_SIZE], mount_point[PATH_SIZE];

static enum outcome set_up(struct worker *w)
{
	if (namespace_join(w))
		return OP_FAILED;
	if (path_in_shared_dir(w, path, "dir") || path_in_shared_dir(w, mount_point, "mnt"))
		return OP_FAILED;
	return dir_make(w, path) ? OP_FAILED : dir_make(w, mount_point);
}

static inline enum outcome operation(struct worker *w)
{
	return bind_mount(w, path, mount_point) ? OP_FAILED : unmount(w, mount_point);
}
DEFINE_LOOPS(operation)

static const struct workload bind_mount_dir = {
	.id = "bind_mount_dir",
	.title = "Bind-mount and unmount a directory of a shared one in one mount namespace",
	.operation = "mount(\"share/dir.$ID\", \"share/mnt.$ID\", MS_BIND); umount",
	.type = TYPE_METADATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_MEDIUM,
	.contention = "namespace_sem, mount_lock, expedited RCU grace periods",
	.setup_text = "share/dir.$ID/, share/mnt.$ID/, empty; a mount namespace of all processes",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.defers_frees = true,
	.apart = true,
	.inherit = namespace_inherit,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOAD(bind_mount_dir);
