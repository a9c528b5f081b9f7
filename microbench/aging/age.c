// SPDX-License-Identifier: GPL-2.0-only
#include "age.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../core/rng.h"
#include "files.h"

#define MAX_STREAMS 64
#define COMMITS 16		/* syncfs calls while files of all the space are made */
#define PATH_BYTES 1024	/* 64 levels of directories and a file */
#define WRITTEN (1 << 18)	/* bytes at once */

/* A file that grows. */
struct stream {
	struct file file;
	uint64_t done;
	int fd;			/* -1: none */
};

struct aging {
	const struct profile *profile;
	struct rng rng;
	struct files files;
	struct stream streams[MAX_STREAMS];
	int root, progress;
	bool writes;		/* fallocate places no blocks */
	uint64_t block;
	uint64_t capacity, used;	/* bytes of files: the most at once, and now */
	uint64_t made, synced, until;	/* bytes of all files that were made; at the last syncfs; at the end */
	uint64_t number;
};

static bool failed(const char *call, const char *what)
{
	fprintf(stderr, "fscale-age: %s %s: %s\n", call, what, strerror(errno));
	return false;
}

/* In [0, 1). */
static double uniform(struct aging *a)
{
	return (double)(rng_next(&a->rng) >> 11) * 0x1p-53;
}

static double normal(struct aging *a)
{
	double radius = sqrt(-2 * log(1 - uniform(a)));	/* Box and Muller */

	return radius * cos(2 * M_PI * uniform(a));
}

static unsigned int draw(struct aging *a, const struct table *table)
{
	uint64_t at = (uint64_t)(uniform(a) * (double)table->weight);
	unsigned int row = 0;

	while (at >= table->rows[row].weight)
		at -= table->rows[row++].weight;
	return row;
}

/* Between the size of a row and that of the row before; all powers of two in it are equally likely. */
static uint64_t draw_bytes(struct aging *a)
{
	const struct table *sizes = &a->profile->sizes;
	unsigned int row = draw(a, sizes);
	double most = (double)sizes->rows[row].value;
	double least = row ? (double)sizes->rows[row - 1].value : 1;
	uint64_t bytes = (uint64_t)ceil(least * pow(most / least, uniform(a)));

	return (bytes + a->block - 1) / a->block * a->block;
}

/* Directory i of a level lies in directory i mod n of the n directories above. */
static void path_of_directory(const struct aging *a, unsigned int level, unsigned int directory,
			      char path[PATH_BYTES])
{
	size_t length = 0;

	strcpy(path, "aged");
	if (level)
		path_of_directory(a, level - 1,
				  directory % (unsigned int)a->profile->levels.rows[level - 1].value,
				  path);
	length = strlen(path);
	snprintf(path + length, PATH_BYTES - length, "/d%u", directory);
}

static void path_of(const struct aging *a, const struct file *file, char path[PATH_BYTES])
{
	size_t length;

	path_of_directory(a, file->level, file->directory, path);
	length = strlen(path);
	snprintf(path + length, PATH_BYTES - length, "/f%llu", (unsigned long long)file->number);
}

static bool make_directories(const struct aging *a)
{
	const struct table *levels = &a->profile->levels;
	char path[PATH_BYTES];

	if (mkdirat(a->root, "aged", 0755))
		return failed("mkdirat", "aged");
	for (unsigned int level = 0; level < levels->count; level++) {
		for (unsigned int i = 0; i < levels->rows[level].value; i++) {
			path_of_directory(a, level, i, path);
			if (mkdirat(a->root, path, 0755))
				return failed("mkdirat", path);
		}
	}
	return true;
}

static bool delete_next(struct aging *a)
{
	struct file file = files_take_first(&a->files);
	char path[PATH_BYTES];

	path_of(a, &file, path);
	a->used -= file.bytes;
	return unlinkat(a->root, path, 0) ? failed("unlinkat", path) : true;
}

/* Commit: only then a journal lets the space of deleted files be used again. */
static bool commit(struct aging *a)
{
	a->synced = a->made;
	return syncfs(a->root) ? failed("syncfs", "") : true;
}

static bool begin_file(struct aging *a, struct stream *stream)
{
	struct file *file = &stream->file;
	double sigma = a->profile->lifetime_sigma;
	char path[PATH_BYTES];

	file->bytes = draw_bytes(a);
	file->level = draw(a, &a->profile->levels);
	file->directory = (unsigned int)(uniform(a) *
					 (double)a->profile->levels.rows[file->level].value);
	file->number = a->number++;
	/* In units of the time in which all space is made once, of which the mean lifetime is one. */
	file->death = (double)a->made / (double)a->capacity +
		      exp(sigma * normal(a) - sigma * sigma / 2);
	while (a->files.count && a->used + file->bytes > a->capacity)
		if (!delete_next(a))
			return false;
	a->used += file->bytes;
	a->made += file->bytes;
	if (a->made - a->synced > a->capacity / COMMITS && !commit(a))
		return false;
	path_of(a, file, path);
	stream->done = 0;
	stream->fd = openat(a->root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	return stream->fd < 0 ? failed("openat", path) : true;
}

/* 0, or -1 with errno; what was placed before an error may be placed again. */
static int place(const struct aging *a, int fd, uint64_t offset, uint64_t bytes)
{
	static const char zeros[WRITTEN];

	if (!a->writes)
		return fallocate(fd, 0, (off_t)offset, (off_t)bytes);
	while (bytes) {
		ssize_t done = pwrite(fd, zeros, bytes < WRITTEN ? bytes : WRITTEN, (off_t)offset);

		if (done < 0)
			return -1;
		offset += (uint64_t)done;
		bytes -= (uint64_t)done;
	}
	return 0;
}

/* Find out whether fallocate gives a block its place. */
static bool probe(struct aging *a)
{
	const char *path = "aged/probe", *call;
	bool placed = false, done = false;
	int fd = openat(a->root, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return failed("openat", path);
	if (fallocate(fd, 0, 0, (off_t)a->block))
		failed("fallocate", path);
	else if ((call = layout_placed(fd, &placed)))
		failed(call, path);
	else
		done = true;
	a->writes = !placed;
	if (close(fd))
		done = failed("close", path);
	if (unlinkat(a->root, path, 0))
		done = failed("unlinkat", path);
	return done;
}

static bool append(struct aging *a, struct stream *stream)
{
	uint64_t left = stream->file.bytes - stream->done;
	uint64_t bytes = left < a->profile->append ? left : a->profile->append;
	bool again = false;

	while (place(a, stream->fd, stream->done, bytes)) {
		if (errno == EINTR)
			continue;
		if (errno != ENOSPC || again)
			return failed(a->writes ? "pwrite" : "fallocate", "a file");
		again = true;
		if (!commit(a))
			return false;
	}
	stream->done += bytes;
	return true;
}

static bool end_file(struct aging *a, struct stream *stream)
{
	int fd = stream->fd;

	stream->fd = -1;
	if (close(fd))
		return failed("close", "a file");
	if (files_add(&a->files, stream->file))
		return true;
	return failed("reallocarray", "files");
}

static bool tell(const struct aging *a)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%.4f\n",
			      fmin(1, (double)a->made / (double)a->until));

	if (a->progress >= 0 && pwrite(a->progress, text, (size_t)length, 0) != length)
		return failed("pwrite", "progress");
	return true;
}

/* Let files grow in turn until files of `until` bytes were made, and those that were begun are whole. */
static bool make_files(struct aging *a, uint64_t until)
{
	bool growing = true;

	while (growing) {
		growing = false;
		for (unsigned int i = 0; i < a->profile->streams; i++) {
			struct stream *stream = &a->streams[i];

			if (stream->fd < 0) {
				if (a->made >= until)
					continue;
				if (!begin_file(a, stream))
					return false;
				if (a->number % 64 == 0 && !tell(a))
					return false;
			}
			growing = true;
			if (!append(a, stream))
				return false;
			if (stream->done == stream->file.bytes && !end_file(a, stream))
				return false;
		}
	}
	return commit(a);
}

static bool look(const struct aging *a, struct layout *layout)
{
	char path[PATH_BYTES];
	const char *call;

	for (size_t i = 0; i < a->files.count; i++) {
		int fd;

		path_of(a, &a->files.heap[i], path);
		fd = openat(a->root, path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return failed("openat", path);
		call = layout_add(layout, fd);
		close(fd);
		if (call)
			return failed(call, path);
	}
	call = layout_add_free(layout, a->root);
	return call ? failed(call, "") : true;
}

static bool measure_space(struct aging *a)
{
	struct statvfs vfs;

	if (fstatvfs(a->root, &vfs))
		return failed("fstatvfs", "");
	a->block = vfs.f_frsize;
	a->capacity = (uint64_t)((double)vfs.f_bavail * (double)vfs.f_frsize *
				 a->profile->utilisation);
	a->until = (uint64_t)((double)a->capacity * (1 + a->profile->churn));
	return true;
}

bool age(const struct profile *profile, const char *directory, const char *progress,
	 struct aged *aged)
{
	struct aging a = { .profile = profile, .root = -1, .progress = -1 };
	bool done = false;

	rng_seed(&a.rng, profile->seed, 0);
	for (unsigned int i = 0; i < MAX_STREAMS; i++)
		a.streams[i].fd = -1;
	a.root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a.root < 0)
		return failed("open", directory);
	if (progress)
		a.progress = open(progress, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (progress && a.progress < 0)
		failed("open", progress);
	else
		done = measure_space(&a) && make_directories(&a) && probe(&a) &&
		       make_files(&a, a.capacity) && look(&a, &aged->filled) && make_files(&a, a.until) &&
		       look(&a, &aged->aged);
	free(a.files.heap);
	if (a.progress >= 0)
		close(a.progress);
	close(a.root);
	return done;
}
