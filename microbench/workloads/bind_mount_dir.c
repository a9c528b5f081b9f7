// SPDX-License-Identifier: GPL-2.0-only
#include "../core/namespace.h"

static PER_WORKER struct bind bind;

static enum outcome set_up(struct worker *w)
{
	return namespace_join(w) ? OP_FAILED : bind_init(w, &bind, path_in_shared_dir);
}

static inline enum outcome operation(struct worker *w)
{
	return bind_and_unmount(w, &bind);
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
