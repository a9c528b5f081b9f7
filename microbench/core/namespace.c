// SPDX-License-Identifier: GPL-2.0-only
#include "namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The namespace of all workers. */
static int common = -1;

/*
 * Move the calling thread to a new namespace, of which *fd is then a descriptor. Returns the call
 * that failed, or NULL.
 */
static const char *isolate(const char *dir, int *fd)
{
	int where, tree;

	if (unshare(CLONE_NEWNS))
		return "unshare(CLONE_NEWNS)";
	*fd = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return "open(/proc/thread-self/ns/mnt)";
	where = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (where < 0)
		return "open(O_PATH)";
	/* The "/" of a chroot need not be a mount point; the one that this leads to is. */
	if (setns(*fd, CLONE_NEWNS))
		return "setns";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return "mount(MS_PRIVATE)";
	tree = open_tree(where, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return "open_tree";
	if (move_mount(tree, "", where, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH))
		return "move_mount";
	if (fchdir(tree))
		return "fchdir";
	/* The old root lies on the new one then, with all mounts of the machine below it. */
	if (syscall(SYS_pivot_root, ".", "."))
		return "pivot_root";
	if (umount2(".", MNT_DETACH))
		return "umount2(MNT_DETACH)";
	return close(tree) || close(where) ? "close" : NULL;
}

static enum outcome fail(struct worker *w, const char *call)
{
	return kernel_refuses() ? worker_unsupported(w, call, NULL) : worker_fail(w, call, NULL);
}

enum outcome namespace_enter(struct worker *w)
{
	const char *failed;
	int fd;

	failed = isolate(".", &fd);
	if (failed)
		return fail(w, failed);
	return close(fd) ? worker_fail(w, "close", NULL) : OP_OK;
}

struct maker {
	const char *dir, *failed;
	const char *(*mount_within)(void);
	int error;
};

static void *make(void *argument)
{
	struct maker *maker = argument;

	maker->failed = isolate(maker->dir, &common);
	if (!maker->failed && maker->mount_within)
		maker->failed = maker->mount_within();
	maker->error = errno;
	return NULL;
}

/* A thread makes it, for the parent itself must see the machine's /proc. */
const char *namespace_inherit_with(const char *dir, const char *(*mount_within)(void))
{
	struct maker maker = { .dir = dir, .mount_within = mount_within };
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, make, &maker);

	if (!rc)
		rc = pthread_join(thread, NULL);
	errno = rc ? rc : maker.error;
	return rc ? "pthread_create" : maker.failed;
}

const char *namespace_inherit(const char *dir)
{
	return namespace_inherit_with(dir, NULL);
}

enum outcome namespace_join(struct worker *w)
{
	/* A thread that shares its working directory may not leave. */
	if (unshare(CLONE_FS))
		return fail(w, "unshare(CLONE_FS)");
	return setns(common, CLONE_NEWNS) ? fail(w, "setns") : OP_OK;
}

enum outcome bind_init(struct worker *w, struct bind *bind,
		       enum outcome (*place)(struct worker *w, char *path, const char *name))
{
	if (place(w, bind->from, "dir") || place(w, bind->to, "mnt"))
		return OP_FAILED;
	return dir_make(w, bind->from) ? OP_FAILED : dir_make(w, bind->to);
}
