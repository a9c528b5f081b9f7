// SPDX-License-Identifier: GPL-2.0-only
/* Compares what the two sides say: results, attributes, contents, directories, whole trees. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "model.h"

#define SAMPLE	40	/* entries of a listing that are looked up */

struct entry {
	char *name;
	unsigned char type;
	ino_t inode;
};

struct listing {
	struct entry *entries;
	size_t count;
	size_t room;
};

static const char *error_text(long result, int error, char text[64])
{
	if (result < 0)
		snprintf(text, 64, "%s", strerrorname_np(error) ?: "?");
	else
		snprintf(text, 64, "%ld", result);
	return text;
}

/* Whether a call did the same on both sides; when not, it is reported. */
bool same_result(struct process *p, const char *call, long test, int test_errno, long reference,
		 int reference_errno)
{
	char texts[SIDES][64];

	if (test < 0 && fault_due(p, "wrong-errno"))
		test_errno = EIO;
	if (test == reference && (test >= 0 || test_errno == reference_errno))
		return true;
	mismatch(p, "%s gives %s, right is %s", call, error_text(test, test_errno, texts[TEST]),
		 error_text(reference, reference_errno, texts[REFERENCE]));
	return false;
}

/* Whether a call failed because the side under test is full, which it may be. */
bool no_space(struct process *p, long result, int error)
{
	return p->options->full && result < 0 && (error == ENOSPC || error == EDQUOT);
}

/* A directory in which other processes make entries: sN. */
static bool is_shared(const char *path)
{
	return path[0] == 's' && !strchr(path, '/');
}

static bool mtime_same(const struct stat *test, const struct stat *reference)
{
	bool old = test->st_mtim.tv_sec < STAMP_LIMIT;

	/* Either both carry the stamp that was set, or both were changed since. */
	if (old != (reference->st_mtim.tv_sec < STAMP_LIMIT))
		return false;
	return !old || (test->st_mtim.tv_sec == reference->st_mtim.tv_sec &&
			test->st_mtim.tv_nsec == reference->st_mtim.tv_nsec);
}

void compare_stats(struct process *p, const char *what, const struct stat *test,
		   const struct stat *reference)
{
	const char *field = NULL;
	long long seen = 0, right = 0;

#define COMPARE(member) do {							\
	if (!field && test->member != reference->member) {			\
		field = #member;						\
		seen = (long long)test->member;					\
		right = (long long)reference->member;				\
	}									\
} while (0)
	COMPARE(st_mode);
	COMPARE(st_uid);
	COMPARE(st_gid);
	if (!S_ISDIR(test->st_mode))
		COMPARE(st_size);
	if (S_ISBLK(test->st_mode) || S_ISCHR(test->st_mode))
		COMPARE(st_rdev);
	/* Some file systems give every directory one link. */
	if (!is_shared(what) && !(S_ISDIR(test->st_mode) && test->st_nlink == 1))
		COMPARE(st_nlink);
	/* A write that failed for lack of space may have set the time. */
	if (!field && !is_shared(what) && !p->options->full && !mtime_same(test, reference)) {
		field = "st_mtime";
		seen = test->st_mtim.tv_sec;
		right = reference->st_mtim.tv_sec;
	}
#undef COMPARE
	if (field)
		mismatch(p, "%s: %s is %lld, right is %lld", what, field, seen, right);
}

void compare_stat(struct process *p, const char *path)
{
	struct stat found[SIDES];
	int error[SIDES];
	int result[SIDES];

	for (int side = TEST; side < SIDES; side++) {
		result[side] = fstatat(p->root[side], path, &found[side], AT_SYMLINK_NOFOLLOW);
		error[side] = errno;
	}
	if (same_result(p, "lstat", result[TEST], error[TEST], result[REFERENCE],
			error[REFERENCE]) && result[TEST] == 0)
		compare_stats(p, path, &found[TEST], &found[REFERENCE]);
}

static off_t next_data(struct process *p, int fd, off_t from, off_t size)
{
	off_t at = lseek(fd, from, SEEK_DATA);

	if (at < 0 && errno == ENXIO)
		return size;
	if (at < 0 && errno == EINVAL)
		return from;
	if (at < 0)
		mismatch(p, "lseek(SEEK_DATA) from %lld: %s", (long long)from, strerror(errno));
	return at < 0 ? size : at;
}

static bool all_zero(const unsigned char *data, size_t length)
{
	for (size_t n = 0; n < length; n++)
		if (data[n])
			return false;
	return true;
}

/* Compare two readable files of any size; where both have holes nothing is read. */
void compare_contents(struct process *p, const char *what, int test, int reference)
{
	unsigned char *const *data = p->buffer;
	int fd[SIDES] = { test, reference };
	struct stat found[SIDES];
	off_t at = 0;

	for (int side = TEST; side < SIDES; side++)
		if (fstat(fd[side], &found[side]) < 0)
			fatal("fstat %s: %s", what, strerror(errno));
	if (found[TEST].st_size != found[REFERENCE].st_size) {
		mismatch(p, "%s has %lld bytes, right are %lld", what,
			 (long long)found[TEST].st_size, (long long)found[REFERENCE].st_size);
		return;
	}
	while (at < found[TEST].st_size && !p->failed) {
		off_t hole_to = next_data(p, test, at, found[TEST].st_size);
		off_t right_to = next_data(p, reference, at, found[TEST].st_size);
		ssize_t got[SIDES];

		at = hole_to < right_to ? hole_to : right_to;
		if (at >= found[TEST].st_size)
			break;
		for (int side = TEST; side < SIDES; side++) {
			got[side] = pread(fd[side], data[side], LONGEST, at);
			if (got[side] < 0) {
				mismatch(p, "%s cannot be read at %lld: %s", what, (long long)at,
					 strerror(errno));
				return;
			}
		}
		if (got[TEST] != got[REFERENCE]) {
			mismatch(p, "%s: read at %lld gives %zd bytes, right are %zd", what,
				 (long long)at, got[TEST], got[REFERENCE]);
			return;
		}
		for (ssize_t n = 0; n < got[TEST]; n++) {
			if (data[TEST][n] == data[REFERENCE][n])
				continue;
			mismatch(p, "%s differs at byte %lld of %lld: %02x, right is %02x", what,
				 (long long)at + n, (long long)found[TEST].st_size, data[TEST][n],
				 data[REFERENCE][n]);
			return;
		}
		if (hole_to > at) {
			size_t hole = hole_to - at < got[TEST] ? (size_t)(hole_to - at) :
								 (size_t)got[TEST];

			if (!all_zero(data[TEST], hole))
				mismatch(p, "%s: lseek(SEEK_DATA) skips data at %lld", what,
					 (long long)at);
		}
		at += got[TEST];
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void forget(struct listing *list)
{
	for (size_t n = 0; n < list->count; n++)
		free(list->entries[n].name);
	free(list->entries);
	memset(list, 0, sizeof(*list));
}

/* List a directory, sorted; `prefix` leaves out the names of others. errno or 0. */
static int list_directory(int root, const char *path, const char *prefix, struct listing *list)
{
	int fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *found;
	DIR *directory;
	int error;

	memset(list, 0, sizeof(*list));
	if (fd < 0)
		return errno;
	directory = fdopendir(fd);
	if (!directory)
		fatal("fdopendir: %s", strerror(errno));
	while (errno = 0, (found = readdir(directory))) {
		if (prefix && strncmp(found->d_name, prefix, strlen(prefix)))
			continue;
		if (list->count == list->room) {
			list->room = list->room ? 2 * list->room : 64;
			list->entries = realloc(list->entries, list->room * sizeof(struct entry));
			if (!list->entries)
				fatal("no memory");
		}
		list->entries[list->count++] =
			(struct entry){ strdup(found->d_name), found->d_type, found->d_ino };
	}
	error = errno;
	closedir(directory);
	if (list->count)
		qsort(list->entries, list->count, sizeof(struct entry), by_name);
	return error;
}

static void check_entry(struct process *p, const char *path, const struct entry *entry)
{
	char full[2 * PATH_MAX];
	struct stat found;

	if (!strcmp(entry->name, ".."))
		return;
	snprintf(full, sizeof(full), "%s/%s", path, entry->name);
	if (fstatat(p->root[TEST], full, &found, AT_SYMLINK_NOFOLLOW) < 0)
		mismatch(p, "%s is listed and cannot be found: %s", full, strerror(errno));
	else if (found.st_ino != entry->inode)
		mismatch(p, "%s is listed with inode %llu and is %llu", full,
			 (unsigned long long)entry->inode, (unsigned long long)found.st_ino);
}

static void compare_listings(struct process *p, const char *path, const struct listing *test,
			     const struct listing *reference)
{
	size_t a = 0, b = 0;

	while ((a < test->count || b < reference->count) && !p->failed) {
		int order = a == test->count ? 1 :
			    b == reference->count ? -1 :
			    strcmp(test->entries[a].name, reference->entries[b].name);

		if (a && a < test->count &&
		    !strcmp(test->entries[a].name, test->entries[a - 1].name))
			mismatch(p, "%s lists %s twice", path, test->entries[a].name);
		else if (order > 0)
			mismatch(p, "%s does not list %s", path, reference->entries[b].name);
		else if (order < 0)
			mismatch(p, "%s lists %s, which is not there", path,
				 test->entries[a].name);
		else if (test->entries[a].type != DT_UNKNOWN &&
			 test->entries[a].type != reference->entries[b].type)
			mismatch(p, "%s lists %s as type %d, right is %d", path,
				 test->entries[a].name, test->entries[a].type,
				 reference->entries[b].type);
		a++;
		b++;
	}
}

void compare_directory(struct process *p, const char *path)
{
	struct listing list[SIDES];
	int error[SIDES];
	char own[16];
	size_t step;

	snprintf(own, sizeof(own), "p%d_", p->number);
	for (int side = TEST; side < SIDES; side++)
		error[side] = list_directory(p->root[side], path,
					     is_shared(path) && !p->options->verify ? own : NULL,
					     &list[side]);
	if (same_result(p, "readdir", -error[TEST], error[TEST], -error[REFERENCE],
			error[REFERENCE]) && !error[TEST]) {
		if (list[TEST].count > 2 && fault_due(p, "lost-entry"))
			free(list[TEST].entries[--list[TEST].count].name);
		compare_listings(p, path, &list[TEST], &list[REFERENCE]);
		step = p->options->verify ? 1 : list[TEST].count / SAMPLE + 1;
		for (size_t n = 0; n < list[TEST].count && !p->failed; n += step)
			check_entry(p, path, &list[TEST].entries[n]);
	}
	forget(&list[TEST]);
	forget(&list[REFERENCE]);
}

static void compare_file(struct process *p, const char *path)
{
	int fd[SIDES];
	int error[SIDES];

	for (int side = TEST; side < SIDES; side++) {
		fd[side] = openat(p->root[side], path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		error[side] = errno;
	}
	if (same_result(p, "open", fd[TEST] < 0 ? -1 : 0, error[TEST], fd[REFERENCE] < 0 ? -1 : 0,
			error[REFERENCE]) && fd[TEST] >= 0)
		compare_contents(p, path, fd[TEST], fd[REFERENCE]);
	for (int side = TEST; side < SIDES; side++)
		if (fd[side] >= 0)
			close(fd[side]);
}

static void compare_link(struct process *p, const char *path)
{
	char target[SIDES][PATH_MAX];
	ssize_t length[SIDES];

	for (int side = TEST; side < SIDES; side++)
		length[side] = readlinkat(p->root[side], path, target[side], PATH_MAX);
	if (length[TEST] != length[REFERENCE] ||
	    (length[TEST] > 0 && memcmp(target[TEST], target[REFERENCE], (size_t)length[TEST])))
		mismatch(p, "%s: the link's target differs", path);
}

/* Compare an object and all below it. */
void compare_tree(struct process *p, const char *path)
{
	struct listing list;
	struct stat found;

	compare_stat(p, path);
	if (!p->failed)
		compare_xattrs(p, path);
	if (p->failed || fstatat(p->root[REFERENCE], path, &found, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (S_ISREG(found.st_mode))
		compare_file(p, path);
	else if (S_ISLNK(found.st_mode))
		compare_link(p, path);
	if (!S_ISDIR(found.st_mode))
		return;
	compare_directory(p, path);
	if (list_directory(p->root[REFERENCE], path, NULL, &list))
		fatal("%s/%s cannot be listed", p->options->dir[REFERENCE], path);
	for (size_t n = 0; n < list.count && !p->failed; n++) {
		char below[2 * PATH_MAX];
		const char *name = list.entries[n].name;

		snprintf(below, sizeof(below), "%s/%s", path, name);
		if (strcmp(name, ".") && strcmp(name, ".."))
			compare_tree(p, below);
	}
	forget(&list);
}

/* Compare all trees; nothing else may be at work. */
void compare_everything(struct process *p)
{
	struct listing list;

	if (list_directory(p->root[REFERENCE], ".", NULL, &list))
		fatal("%s cannot be listed", p->options->dir[REFERENCE]);
	for (size_t n = 0; n < list.count && !p->failed; n++)
		if (list.entries[n].name[0] == 's' || list.entries[n].name[0] == 'p')
			compare_tree(p, list.entries[n].name);
	forget(&list);
}
