// SPDX-License-Identifier: GPL-2.0-only
/*
 * visit ROOT SEED: looks at everything below ROOT, changes things, and looks again.
 *
 * The file system may be corrupt: every call may fail, directories may lead back to themselves.
 * All that counts is that each call returns. Exit code 0.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MOST_ENTRIES	6000
#define DEEPEST		40
#define CHANGES		60

static char bytes[65536];
static unsigned int seen;

/* All extended attributes of an object; the names first. */
static void look_at_attributes(int directory, const char *name)
{
	static char list[65536];
	char path[64];
	int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	ssize_t size;

	if (fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	size = listxattr(path, list, sizeof(list));
	for (char *one = list; one < list + size; one += strlen(one) + 1)
		if (getxattr(path, one, bytes, sizeof(bytes)) < 0)
			perror("getxattr");
	close(fd);
}

static void look_at_file(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	off_t at = 0;

	if (fd < 0)
		return;
	if (pread(fd, bytes, sizeof(bytes), 0) < 0)
		perror("pread");
	for (int n = 0; n < 10 && at >= 0; n++) {
		at = lseek(fd, at, SEEK_DATA);
		if (at >= 0 && pread(fd, bytes, 4096, at) < 0)
			perror("pread");
		if (at >= 0)
			at = lseek(fd, at, SEEK_HOLE);
	}
	close(fd);
}

static void look(int parent, const char *name, int depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;
	struct stat found;
	DIR *directory;

	if (fd < 0)
		return;
	directory = fdopendir(fd);
	if (!directory) {
		close(fd);
		return;
	}
	while (seen < MOST_ENTRIES && (entry = readdir(directory))) {
		seen++;
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    fstatat(fd, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		look_at_attributes(fd, entry->d_name);
		if (S_ISDIR(found.st_mode) && depth < DEEPEST)
			look(fd, entry->d_name, depth + 1);
		else if (S_ISLNK(found.st_mode))
			(void)!readlinkat(fd, entry->d_name, bytes, sizeof(bytes));
		else if (S_ISREG(found.st_mode))
			look_at_file(fd, entry->d_name);
	}
	closedir(directory);
}

/* Some names of a directory, evenly spread. */
static int some_names(int root, char (*names)[NAME_MAX + 1], int most)
{
	int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int count = 0, number = 0;

	if (!directory)
		return 0;
	while (count < most && number < MOST_ENTRIES && (entry = readdir(directory)))
		if (entry->d_name[0] != '.' && number++ % 5 == 0)
			strcpy(names[count++], entry->d_name);
	closedir(directory);
	return count;
}

/* Sets some, removes what is found. */
static int change_attributes(int root, const char *name, unsigned int what)
{
	char path[64], list[4096], *one = list;
	int fd = openat(root, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), done = 0;
	ssize_t size;

	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	done |= setxattr(path, "trusted.visit", bytes, what % 3000, 0);
	done |= setxattr(path, "user.visit", bytes, what % 500, 0);
	size = listxattr(path, list, sizeof(list));
	for (; one < list + size; one += strlen(one) + 1)
		if (what & 64)
			done |= removexattr(path, one);
	close(fd);
	return done;
}

static int change(int root, const char *name, const char *other, unsigned int what)
{
	struct stat found;
	int fd, done;

	/* Not into a FIFO or a device. */
	if (fstatat(root, name, &found, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	switch (what % 11) {
	case 0:
		return unlinkat(root, name, 0);
	case 1:
		return unlinkat(root, name, AT_REMOVEDIR);
	case 2:
		return renameat(root, name, root, "renamed");
	case 3:
		return linkat(root, name, root, "linked", 0);
	case 4:
		return renameat(root, name, root, other);
	case 5:
		return fchmodat(root, name, 0600, 0);
	case 9:
		return change_attributes(root, name, what);
	case 10:
		return renameat2(root, name, root, other, 4 /* RENAME_WHITEOUT */);
	default:
		fd = openat(root, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			return -1;
		done = !S_ISREG(found.st_mode) ? -1 :
		       what % 11 == 6 ? ftruncate(fd, 5000) :
		       what % 11 == 7 ? ftruncate(fd, 1 << 24) :
		       pwrite(fd, bytes, 20000, 3000) < 0 ? -1 : 0;
		if (what % 2)
			done |= fsync(fd);
		close(fd);
		return done;
	}
}

static void alter(int root, unsigned int seed)
{
	static char names[CHANGES][NAME_MAX + 1];
	int count = some_names(root, names, CHANGES);
	int failed = 0;
	char name[32];

	srandom(seed);
	for (int n = 0; n < count; n++)
		failed += change(root, names[n], names[(n + 1) % count],
				 (unsigned int)random()) < 0;
	for (int n = 0; n < 40; n++) {
		int fd;

		snprintf(name, sizeof(name), "new%d", n);
		if (n % 4 == 0 && mkdirat(root, name, 0755) < 0)
			failed++;
		/* A FIFO may have been renamed to that. */
		fd = openat(root, name, O_CREAT | O_WRONLY | O_NONBLOCK | O_CLOEXEC, 0644);
		if (fd < 0)
			continue;
		if (write(fd, bytes, 9000) < 0 || (n % 8 == 1 && fsync(fd) < 0))
			failed++;
		close(fd);
	}
	if (fsync(root) < 0)
		failed++;
	printf("%d of %d changes failed\n", failed, count + 40);
}

int main(int argc, char **argv)
{
	struct statvfs space;
	int root;

	if (argc != 3) {
		fprintf(stderr, "usage: visit ROOT SEED\n");
		return 2;
	}
	root = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0) {
		perror(argv[1]);
		return 0;
	}
	if (fstatvfs(root, &space) < 0)
		perror("statvfs");
	look(root, ".", 0);
	alter(root, (unsigned int)strtoul(argv[2], NULL, 10));
	seen = 0;
	look(root, ".", 0);
	return 0;
}
