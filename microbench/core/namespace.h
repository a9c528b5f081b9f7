/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mount namespaces of workers. The directory under test is the root and the only mount in one: it
 * keeps no other file system of the machine in use. No other process sees what workers mount, and
 * all of it is gone with the last process of the run, however that ends.
 */
#ifndef FSCALE_NAMESPACE_H
#define FSCALE_NAMESPACE_H

#include <sys/mount.h>

#include "paths.h"
#include "workload.h"

/*
 * Each moves the calling worker, by itself or to where all workers are; the working directory is
 * the directory under test as before. The run is skipped if the kernel denies it to this user.
 */
enum outcome namespace_enter(struct worker *w);
enum outcome namespace_join(struct worker *w);

/* Makes the namespace that namespace_join() needs, for `inherit` of a workload. */
const char *namespace_inherit(const char *dir);
/* The same; `mount_within` is called in it, returns the call that failed, or NULL. */
const char *namespace_inherit_with(const char *dir, const char *(*mount_within)(void));

static inline enum outcome unmount(struct worker *w, const char *path)
{
	return umount2(path, 0) ? worker_fail(w, "umount2", path) : OP_OK;
}

/* Two empty directories, "dir" and "mnt": the first is mounted on the second. */
struct bind {
	char from[PATH_SIZE], to[PATH_SIZE];
};

/* Make both where `place`, such as path_private(), puts their names. */
enum outcome bind_init(struct worker *w, struct bind *bind,
		       enum outcome (*place)(struct worker *w, char *path, const char *name));

static inline enum outcome bind_and_unmount(struct worker *w, const struct bind *bind)
{
	if (mount(bind->from, bind->to, NULL, MS_BIND, NULL))
		return worker_fail(w, "mount(MS_BIND)", bind->to);
	return unmount(w, bind->to);
}

#endif
