// SPDX-License-Identifier: GPL-2.0-only
#include "../core/namespace.h"

static PER_WORKER struct bind bind;

static enum outcome set_up(struct worker *w)
{
	bool private = w->workload->sharing == SHARING_LOW;

	if (private ? namespace_enter(w) : namespace_join(w))
		return OP_FAILED;
	return bind_init(w, &bind, path_make);
}

static inline enum outcome operation(struct worker *w)
{
	return bind_and_unmount(w, &bind);
}
DEFINE_LOOPS(operation)

#define COMMON										\
	.type = TYPE_METADATA, .action = ACTION_WRITE, .min_cores = 1,			\
	.modes = IN_MODE(MODE_BUFFERED), .defers_frees = true, .named_only = true,	\
	.setup = set_up, LOOPS(operation)

static const struct workload bind_mount_dir = {
	.id = "bind_mount_dir",
	.title = "Bind-mount and unmount a directory of a shared one in one mount namespace",
	.operation = "mount(\"share/dir.$ID\", \"share/mnt.$ID\", MS_BIND); umount",
	.sharing = SHARING_MEDIUM,
	.contention = "namespace_sem, mount_lock, expedited RCU grace periods",
	.setup_text = "share/dir.$ID/, share/mnt.$ID/, empty; a mount namespace of all processes",
	.inherit = namespace_inherit,
	COMMON,
};

static const struct workload bind_mount_private = {
	.id = "bind_mount_private",
	.title = "Bind-mount and unmount a private directory in a private mount namespace",
	.operation = "mount(\"$ID/dir\", \"$ID/mnt\", MS_BIND); umount",
	.sharing = SHARING_LOW,
	.contention = "namespace_sem, mount_lock, expedited RCU grace periods",
	.setup_text = "$ID/dir/, $ID/mnt/, empty; a mount namespace of each process",
	COMMON,
};
REGISTER_WORKLOADS(&bind_mount_dir, &bind_mount_private);
