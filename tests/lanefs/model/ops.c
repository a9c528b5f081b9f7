// SPDX-License-Identifier: GPL-2.0-only
/* Operations on names. Each is done on both sides and gives the same result, or is reported. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "model.h"

static const char *const both[SIDES] = { "test", "reference" };

/*
 * Do `expression` (which may use `side` and `root`) on both sides and compare. When the side under
 * test is full the reference is left alone.
 */
#define BOTH(p, call, expression) ({						\
	long results_[SIDES];							\
	int errors_[SIDES];							\
	bool ok_ = false;							\
	for (int side = TEST; side < SIDES; side++) {				\
		int root = (p)->root[side];					\
		(void)root;							\
		errno = 0;							\
		results_[side] = (expression);					\
		errors_[side] = errno;						\
		if (side == TEST && no_space(p, results_[side], errno))		\
			break;							\
		if (side == REFERENCE)						\
			ok_ = same_result(p, call, results_[TEST], errors_[TEST],\
					  results_[REFERENCE],			\
					  errors_[REFERENCE]) &&		\
			      results_[TEST] >= 0;				\
	}									\
	ok_;									\
})

static void compare_parent(struct process *p, const char *path)
{
	char parent[PATH_MAX];
	char *slash;

	snprintf(parent, sizeof(parent), "%s", path);
	slash = strrchr(parent, '/');
	if (!slash || !slash[1])
		return;
	*slash = '\0';
	if (rng_percent(p, 5))
		compare_directory(p, parent);
	else
		compare_stat(p, parent);
}

static struct open_file *slot(struct process *p)
{
	struct open_file *file = &p->open[rng_below(p, OPEN_FILES)];

	if (file->fd[TEST] >= 0)
		close_file(p, file);
	return file;
}

static void op_open(struct process *p)
{
	static const int creation[] = { 0, O_CREAT, O_CREAT, O_CREAT | O_EXCL, O_CREAT | O_TRUNC,
					O_TRUNC };
	static const int access[] = { O_RDONLY, O_WRONLY, O_RDWR, O_RDWR, O_RDWR | O_APPEND };
	struct open_file *file = slot(p);
	int flags = creation[rng_below(p, 6)] | access[rng_below(p, 5)];
	mode_t mode = (mode_t)(0600 | rng_below(p, 0200));
	char path[PATH_MAX];
	int fd[SIDES] = { -1, -1 };
	struct stat found;

	path_any(p, path);
	note(p, "open(%s, %#o, %#o)", path, flags, mode);
	/*
	 * Opening a FIFO or a device would wait for somebody, or find no driver. A directory's
	 * size and bytes are the file system's own affair.
	 */
	if (fstatat(p->root[REFERENCE], path, &found, 0) == 0 && !S_ISREG(found.st_mode)) {
		if (!S_ISDIR(found.st_mode))
			return;
		flags |= O_DIRECTORY;
	}
	if (BOTH(p, "open", (fd[side] = openat(root, path, flags | O_CLOEXEC, mode), fd[side] < 0 ?
			     -1 : 0))) {
		memcpy(file->fd, fd, sizeof(fd));
		snprintf(file->path, sizeof(file->path), "%s", path);
		file->readable = (flags & O_ACCMODE) != O_WRONLY && !(flags & O_DIRECTORY);
		file->writable = (flags & O_ACCMODE) != O_RDONLY;
	} else {
		for (int side = TEST; side < SIDES; side++)
			if (fd[side] >= 0)
				close(fd[side]);
	}
	compare_stat(p, path);
	compare_parent(p, path);
}

/* A file without a name, which may get one. */
static void op_tmpfile(struct process *p)
{
	struct open_file *file = slot(p);
	char directory[PATH_MAX], name[PATH_MAX];
	int fd[SIDES] = { -1, -1 };

	path_any(p, name);
	if (rng_percent(p, 50))
		path_any(p, directory);
	else
		snprintf(directory, sizeof(directory), "s%u", rng_below(p, SHARED_DIRS));
	if (!p->can->tmpfile)
		return;
	note(p, "open(%s, O_TMPFILE), then link as %s", directory, name);
	if (!BOTH(p, "open", (fd[side] = openat(root, directory, O_TMPFILE | O_RDWR | O_CLOEXEC,
						0640), fd[side] < 0 ? -1 : 0))) {
		for (int side = TEST; side < SIDES; side++)
			if (fd[side] >= 0)
				close(fd[side]);
		return;
	}
	memcpy(file->fd, fd, sizeof(fd));
	snprintf(file->path, sizeof(file->path), "anonymous");
	file->readable = file->writable = true;
	if (rng_percent(p, 50))
		return;
	BOTH(p, "linkat", ({
		char path[64];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd[side]);
		OF_PROC(linkat(AT_FDCWD, path, root, name, AT_SYMLINK_FOLLOW));
	}));
	compare_stat(p, name);
	compare_parent(p, name);
}

static void op_mkdir(struct process *p)
{
	char path[PATH_MAX];
	mode_t mode = (mode_t)(0700 | rng_below(p, 0100));

	path_any(p, path);
	note(p, "mkdir(%s, %#o)", path, mode);
	BOTH(p, "mkdir", mkdirat(root, path, mode));
	compare_stat(p, path);
	compare_parent(p, path);
}

static void op_rmdir(struct process *p)
{
	char path[PATH_MAX];

	path_any(p, path);
	note(p, "rmdir(%s)", path);
	BOTH(p, "rmdir", unlinkat(root, path, AT_REMOVEDIR));
	compare_parent(p, path);
}

static void op_unlink(struct process *p)
{
	char path[PATH_MAX];

	path_any(p, path);
	note(p, "unlink(%s)", path);
	if (faccessat(p->root[TEST], path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fault_due(p, "lost-unlink"))
		/* Of a directory it fails, and shows nothing: wait for another. */
		p->fault_done = unlinkat(p->root[REFERENCE], path, 0) == 0;
	else
		BOTH(p, "unlink", unlinkat(root, path, 0));
	compare_stat(p, path);
	compare_parent(p, path);
}

/* Whether a planted fault took the place of the rename. */
static bool rename_fault(struct process *p, const char *from, const char *to)
{
	bool lost = fault_due(p, "lost-rename");
	bool twice = !lost && fault_due(p, "double-rename");

	if (!lost && !twice)
		return false;
	/* A rename that fails, or between links of one file, shows nothing: wait for another. */
	if (renameat(p->root[REFERENCE], from, p->root[REFERENCE], to) < 0 ||
	    faccessat(p->root[REFERENCE], from, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		p->fault_done = false;
	} else if (twice) {
		unlinkat(p->root[TEST], to, 0);
		linkat(p->root[TEST], from, p->root[TEST], to, 0);
	}
	return true;
}

static void op_rename(struct process *p)
{
	static const unsigned int kinds[] = { 0, 0, 0, 1 /* NOREPLACE */, 2 /* EXCHANGE */,
					      4 /* WHITEOUT */ };
	unsigned int flags = kinds[rng_below(p, 6)];
	char from[PATH_MAX], to[PATH_MAX];
	struct stat found;

	if ((flags == 2 && !p->can->exchange) || (flags == 4 && !p->can->whiteout))
		flags = 0;
	path_any(p, from);
	path_any(p, to);
	note(p, "renameat2(%s, %s, %u)", from, to, flags);
	if (!flags && fstatat(p->root[TEST], from, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(found.st_mode) && rename_fault(p, from, to))
		note(p, "(planted)");
	else
		BOTH(p, "renameat2", renameat2(root, from, root, to, flags));
	compare_stat(p, from);
	compare_stat(p, to);
	compare_parent(p, from);
	compare_parent(p, to);
}

static void op_link(struct process *p)
{
	char from[PATH_MAX], to[PATH_MAX];

	path_any(p, from);
	path_any(p, to);
	note(p, "link(%s, %s)", from, to);
	BOTH(p, "link", linkat(root, from, root, to, 0));
	compare_stat(p, from);
	compare_stat(p, to);
	compare_parent(p, to);
}

static void op_symlink(struct process *p)
{
	char path[PATH_MAX], target[PATH_MAX], found[PATH_MAX];
	uint32_t length = rng_percent(p, 80) ? 1 + rng_below(p, 200) : 1 + rng_below(p, 3900);

	path_any(p, path);
	memset(target, 'x', length);
	target[length] = '\0';
	for (uint32_t n = 100; n < length; n += 100)
		target[n] = '/';
	/* Some lead to an object of ours, which must then be the same on both sides. */
	if (rng_percent(p, 40)) {
		char *end = target;

		for (const char *c = path; *c; c++)
			if (*c == '/')
				end = stpcpy(end, "../");
		path_any(p, found);
		strcpy(end, found);
	}
	note(p, "symlink(%.40s..., %s)", target, path);
	BOTH(p, "symlink", symlinkat(target, root, path));
	BOTH(p, "readlink", readlinkat(root, path, found, sizeof(found)));
	compare_stat(p, path);
	compare_parent(p, path);
}

static void op_mknod(struct process *p)
{
	static const mode_t kinds[] = { S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK, S_IFREG };
	mode_t mode = kinds[rng_below(p, 5)] | 0600;
	dev_t device = makedev(rng_below(p, 4096), rng_below(p, 1 << 20));
	char path[PATH_MAX];

	path_any(p, path);
	note(p, "mknod(%s, %#o)", path, mode);
	BOTH(p, "mknod", mknodat(root, path, mode, device));
	compare_stat(p, path);
	compare_parent(p, path);
}

static void op_attributes(struct process *p)
{
	struct timespec times[2] = {
		{ (time_t)rng_below(p, STAMP_LIMIT), (long)rng_below(p, 1000000000) },
		{ (time_t)rng_below(p, STAMP_LIMIT), (long)rng_below(p, 1000000000) },
	};
	mode_t mode = (mode_t)(0600 | rng_below(p, 010000));
	uid_t uid = rng_below(p, 3), gid = rng_below(p, 3);
	char path[PATH_MAX];

	path_any(p, path);
	switch (rng_below(p, 3)) {
	case 0:
		note(p, "chmod(%s, %#o)", path, mode);
		if (faccessat(p->root[TEST], path, F_OK, 0) == 0 && fault_due(p, "lost-mode"))
			fchmodat(p->root[REFERENCE], path, mode, 0);
		else
			BOTH(p, "chmod", fchmodat(root, path, mode, 0));
		break;
	case 1:
		note(p, "lchown(%s, %u, %u)", path, uid, gid);
		BOTH(p, "lchown", fchownat(root, path, uid, gid, AT_SYMLINK_NOFOLLOW));
		break;
	default:
		note(p, "utimensat(%s, mtime %ld.%ld)", path, (long)times[1].tv_sec,
		     times[1].tv_nsec);
		BOTH(p, "utimensat", utimensat(root, path, times, AT_SYMLINK_NOFOLLOW));
	}
	compare_stat(p, path);
}

static void op_truncate(struct process *p)
{
	char path[PATH_MAX];
	struct stat found;
	off_t size;

	path_any(p, path);
	size = rng_percent(p, 90) ? rng_below(p, 3 * LONGEST) : (off_t)(rng_next(p) >> 24);
	note(p, "truncate(%s, %lld)", path, (long long)size);
	/* truncate(2) follows links; of a FIFO or device it says what the kind says. */
	for (int side = TEST; side < SIDES; side++) {
		int fd = openat(p->root[side], path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

		if (fd < 0 || fstat(fd, &found) < 0 || !S_ISREG(found.st_mode)) {
			if (fd >= 0)
				close(fd);
			return;
		}
		if (side == TEST && found.st_size != size && fault_due(p, "lost-truncate")) {
			close(fd);
			continue;
		}
		if (ftruncate(fd, size) < 0) {
			int error = errno;

			close(fd);
			if (!no_space(p, -1, error))
				mismatch(p, "ftruncate on the %s side: %s", both[side],
					 strerror(error));
			return;
		}
		close(fd);
	}
	compare_stat(p, path);
}

static void op_list(struct process *p)
{
	char path[PATH_MAX];

	if (rng_percent(p, 30))
		snprintf(path, sizeof(path), "s%u", rng_below(p, SHARED_DIRS));
	else if (rng_percent(p, 5))
		snprintf(path, sizeof(path), "p%d/big", p->number);
	else
		path_any(p, path);
	note(p, "list %s", path);
	compare_directory(p, path);
}

/* Many names in one directory at once, so that its index grows and shrinks by levels. */
static void op_bulk(struct process *p)
{
	uint32_t first = rng_below(p, 4000), count = 1 + rng_below(p, 400);
	bool make = rng_percent(p, 60);
	char path[64];

	note(p, "bulk %s p%d/big/n%u, %u names", make ? "create" : "unlink", p->number, first,
	     count);
	for (uint32_t n = first; n < first + count && !p->failed; n++) {
		snprintf(path, sizeof(path), "p%d/big/n%u", p->number, n);
		if (make)
			BOTH(p, "mknod", mknodat(root, path, S_IFREG | 0644, 0));
		else
			BOTH(p, "unlink", unlinkat(root, path, 0));
	}
}

static void op_sync(struct process *p)
{
	uint32_t kind = rng_below(p, 10);

	note(p, "sync");
	if (kind == 0 && syncfs(p->root[TEST]) < 0 && errno != EBADF)
		mismatch(p, "syncfs: %s", strerror(errno));
	if (kind == 1 && p->options->drop_caches) {
		int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

		if (fd < 0 || write(fd, "3", 1) < 0)
			fatal("drop_caches: %s", strerror(errno));
		close(fd);
	}
	if (kind > 1) {
		char path[32];
		int fd;

		snprintf(path, sizeof(path), "p%d", p->number);
		fd = openat(p->root[TEST], path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || fsync(fd) < 0)
			mismatch(p, "fsync of %s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
}

/* One operation, chosen by the process's random numbers. */
void operate(struct process *p)
{
	static const struct {
		unsigned int weight;
		void (*operation)(struct process *p);
	} table[] = {
		{ 11, op_open }, { 3, op_xattr }, { 7, op_mkdir }, { 4, op_rmdir }, { 9, op_unlink },
		{ 10, op_rename }, { 6, op_link }, { 3, op_symlink }, { 2, op_mknod },
		{ 5, op_attributes }, { 4, op_truncate }, { 3, op_list }, { 1, op_sync },
		{ 1, op_tmpfile },
	};
	struct open_file *file = &p->open[rng_below(p, OPEN_FILES)];
	uint32_t choice = rng_below(p, 100);

	if (!rng_below(p, 400)) {
		op_bulk(p);
		return;
	}
	for (size_t n = 0; n < sizeof(table) / sizeof(*table); n++) {
		if (choice < table[n].weight) {
			table[n].operation(p);
			return;
		}
		choice -= table[n].weight;
	}
	if (file->fd[TEST] >= 0)
		file_operation(p, file);
	else
		op_open(p);
}
