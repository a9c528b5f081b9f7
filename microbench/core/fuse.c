// SPDX-License-Identifier: GPL-2.0-only
#include "fuse.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEVICE "/dev/fuse"
#define COMM_ANSWER "fscale-fuse"
/* The kernel wants room for a write; none comes. */
#define REQUEST_SIZE 16384
/* Files are numbered by their names, behind the root. */
#define FIRST_NODE (FUSE_ROOT_ID + 1)

struct request {
	struct fuse_in_header head;
	union {
		struct fuse_init_in init;
		char name[REQUEST_SIZE - sizeof(struct fuse_in_header)];
	};
};

struct answer {
	struct fuse_out_header head;
	union {
		struct fuse_init_out init;
		struct fuse_entry_out entry;
		struct fuse_attr_out attr;
	};
};

/* The device of the file system of all workers. */
static int common = -1;

static struct fuse_attr describe(uint64_t node, uint64_t size)
{
	return (struct fuse_attr){
		.ino = node, .size = size, .nlink = 1, .uid = geteuid(), .gid = getegid(),
		.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0444,
	};
}

/* Returns how many bytes follow the header, or a negative errno; *answer is zero. */
static int respond(const struct request *request, struct answer *answer, uint64_t size)
{
	switch (request->head.opcode) {
	case FUSE_INIT:
		answer->init.major = FUSE_KERNEL_VERSION;
		answer->init.minor = request->init.minor < FUSE_KERNEL_MINOR_VERSION ?
				     request->init.minor : FUSE_KERNEL_MINOR_VERSION;
		answer->init.max_write = 4096;
		return sizeof(answer->init);
	case FUSE_LOOKUP:
		answer->entry.nodeid = FIRST_NODE + strtoul(request->name, NULL, 10);
		answer->entry.attr = describe(answer->entry.nodeid, size);
		return sizeof(answer->entry);
	case FUSE_GETATTR:
		answer->attr.attr = describe(request->head.nodeid, size);
		return sizeof(answer->attr);
	default:
		return -ENOSYS;
	}
}

/* Answer until the file system is unmounted. */
static _Noreturn void answer_all(int fd, unsigned int id)
{
	static struct request request;
	uint64_t answers = 0;

	for (;;) {
		struct answer answer = { 0 };
		int length;

		if (read(fd, &request, sizeof(request)) < 0) {
			/* A request that its worker gave up, or a signal. */
			if (errno == ENOENT || errno == EINTR || errno == EAGAIN)
				continue;
			_exit(errno == ENODEV ? 0 : 1);
		}
		if (request.head.opcode == FUSE_FORGET || request.head.opcode == FUSE_BATCH_FORGET)
			continue;
		length = respond(&request, &answer, ++answers << 16 | id);
		answer.head.unique = request.head.unique;
		answer.head.error = length < 0 ? length : 0;
		answer.head.len = (uint32_t)sizeof(answer.head) + (length < 0 ? 0 : (uint32_t)length);
		if (write(fd, &answer, answer.head.len) < 0 && errno != ENOENT)
			_exit(1);
	}
}

/* It stays outside the namespace and keeps nothing open, so that it keeps no file system in use. */
static _Noreturn void answering(const struct worker *w, pid_t worker, int fd, int mounted)
{
	char go;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != worker || chdir("/"))
		_exit(1);
	prctl(PR_SET_NAME, COMM_ANSWER);
	if (read(mounted, &go, 1) != 1 || dup2(fd, STDERR_FILENO + 1) < 0 ||
	    close_range(STDERR_FILENO + 2, ~0u, 0))
		_exit(1);
	answer_all(STDERR_FILENO + 1, w->id);
}

/*
 * Start the process that answers on `fd` once there is a byte in *mounted: the file system is mounted.
 * A worker cannot go on without it, so its end is a signal that ends the worker, too. Threads end
 * before their process, which must survive that.
 */
static enum outcome start(struct worker *w, int fd, int *mounted)
{
	int ends[2], end_signal = w->crew == CREW_PROCESSES ? SIGUSR1 : SIGCHLD;
	pid_t worker = getpid(), pid;

	if (pipe2(ends, O_CLOEXEC))
		return worker_fail(w, "pipe2", NULL);
	pid = (pid_t)syscall(SYS_clone, end_signal, NULL, NULL, NULL, NULL);
	if (pid < 0)
		return worker_fail(w, "clone", NULL);
	if (!pid)
		answering(w, worker, fd, ends[0]);
	*mounted = ends[1];
	return close(ends[0]) || close(fd) ? worker_fail(w, "close", NULL) : OP_OK;
}

static enum outcome open_device(struct worker *w, int *fd)
{
	*fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (*fd >= 0)
		return OP_OK;
	return kernel_refuses() || errno == ENOENT ? worker_unsupported(w, "open", DEVICE) :
						      worker_fail(w, "open", DEVICE);
}

/* The call that failed, or NULL. */
static const char *mount_at(const char *path, int fd)
{
	char options[96];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u", fd,
		 (unsigned int)geteuid(), (unsigned int)getegid());
	return mount("fscale", path, "fuse", MS_NODEV | MS_NOSUID, options) ? "mount(fuse)" : NULL;
}

/* The file system is mounted: let the other process begin, and open the file. */
static enum outcome begin(struct worker *w, struct fuse_file *file, const char *where, int mounted)
{
	if (write(mounted, "", 1) != 1 || close(mounted))
		return worker_fail(w, "write", NULL);
	file->size = 0;
	snprintf(file->path, sizeof(file->path), "%s/%u", where, w->id);
	file->fd = open(file->path, O_PATH | O_CLOEXEC);
	return file->fd < 0 ? worker_fail(w, "open", file->path) : fuse_getattr(w, file);
}

static enum outcome open_private(struct worker *w, struct fuse_file *file)
{
	char where[PATH_SIZE];
	int fd, copy, mounted;

	if (open_device(w, &fd))
		return OP_FAILED;
	copy = dup(fd);
	if (copy < 0)
		return worker_fail(w, "dup", DEVICE);
	if (start(w, copy, &mounted) || namespace_enter(w) || path_private(w, where, "mnt") ||
	    dir_make(w, where))
		return OP_FAILED;
	if (mount_at(where, fd))
		return kernel_refuses() ? worker_unsupported(w, "mount(fuse)", where) :
					  worker_fail(w, "mount(fuse)", where);
	/* The other process alone has it now: if that dies, the kernel ends the request it has. */
	return close(fd) ? worker_fail(w, "close", DEVICE) : begin(w, file, where, mounted);
}

static enum outcome open_shared(struct worker *w, struct fuse_file *file)
{
	int fd, mounted;

	if (open_device(w, &fd))
		return OP_FAILED;
	if (ioctl(fd, FUSE_DEV_IOC_CLONE, &common))
		return worker_fail(w, "ioctl(FUSE_DEV_IOC_CLONE)", DEVICE);
	if (start(w, fd, &mounted) || namespace_join(w))
		return OP_FAILED;
	return begin(w, file, "share/mnt", mounted);
}

enum outcome fuse_open(struct worker *w, struct fuse_file *file)
{
	return w->workload->sharing == SHARING_LOW ? open_private(w, file) : open_shared(w, file);
}

static const char *mount_common(void)
{
	if (mkdir("share", 0755) || mkdir("share/mnt", 0755))
		return "mkdir";
	return mount_at("share/mnt", common);
}

const char *fuse_inherit(const char *dir)
{
	common = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (common >= 0)
		return namespace_inherit_with(dir, mount_common);
	if (errno == ENOENT)
		errno = ENODEV;
	return "open(" DEVICE ")";
}
