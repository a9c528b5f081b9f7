// SPDX-License-Identifier: GPL-2.0-only
#include "../core/namespace.h"

static PER_WORKER struct bind bind;

static enum outcome set_up(struct worker *w)
{
	return namespace_enter(w) ? OP_FAILED : bind_init(w, &bind, path_private);
}

static inline enum outcome operation(struct worker *w)
{
	return bind_and_unmount(w, &bind);
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
