// SPDX-License-Identifier: GPL-2.0-only
/* Operations on open files, also on those whose last name is gone. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model.h"

#define BLOCK	4096

static off_t some_offset(struct process *p)
{
	if (rng_percent(p, 4))
		return (off_t)(rng_next(p) >> 28);
	return rng_below(p, 3 * LONGEST);
}

static size_t some_length(struct process *p)
{
	return rng_percent(p, 60) ? 1 + rng_below(p, 2 * BLOCK) : 1 + rng_below(p, LONGEST);
}

static off_t size_of(struct open_file *file)
{
	struct stat found;

	return fstat(file->fd[REFERENCE], &found) < 0 ? 0 : found.st_size;
}

/* Give both the same modification time, after a change whose time may differ. */
static void stamp(struct process *p, struct open_file *file)
{
	struct timespec times[2] = {
		{ .tv_nsec = UTIME_OMIT },
		{ (time_t)rng_below(p, STAMP_LIMIT), (long)rng_below(p, 1000000000) },
	};

	for (int side = TEST; side < SIDES; side++)
		if (futimens(file->fd[side], times) < 0)
			mismatch(p, "futimens(%s): %s", file->path, strerror(errno));
}

/* What the side under test did not take for lack of space the reference does not get either. */
static void write_both(struct process *p, struct open_file *file, size_t length, off_t offset,
		       bool append)
{
	const unsigned char *data = p->buffer[TEST];
	struct timespec times[2];
	struct stat before;
	ssize_t done, right;
	int error;
	bool lost = file->writable && fault_due(p, "lost-write");
	bool torn = !lost && file->writable && fault_due(p, "torn-write");
	bool still = !lost && !torn && file->writable && fstat(file->fd[TEST], &before) == 0 &&
		     before.st_mtim.tv_sec < STAMP_LIMIT && fault_due(p, "lost-mtime");

	if (torn)
		p->buffer[TEST][length - 1] ^= 1;
	if (lost)
		done = (ssize_t)length;
	else if (append)
		done = write(file->fd[TEST], data, length);
	else
		done = pwrite(file->fd[TEST], data, length, offset);
	error = errno;
	if (torn)
		p->buffer[TEST][length - 1] ^= 1;
	if (still) {
		times[0] = before.st_atim;
		times[1] = before.st_mtim;
		futimens(file->fd[TEST], times);
	}
	if (no_space(p, done, error))
		return;
	if (p->options->full && done > 0 && (size_t)done < length)
		length = (size_t)done;
	right = append ? write(file->fd[REFERENCE], data, length) :
			 pwrite(file->fd[REFERENCE], data, length, offset);
	same_result(p, "write", done, error, right, errno);
}

static void op_write(struct process *p, struct open_file *file)
{
	size_t length = some_length(p);
	off_t offset = some_offset(p);
	bool append = rng_percent(p, 25);

	rng_fill(p, p->buffer[TEST], length);
	note(p, "%s(%s, %zu bytes, at %lld)", append ? "write" : "pwrite", file->path, length,
	     append ? (long long)-1 : (long long)offset);
	write_both(p, file, length, offset, append);
}

static void op_read(struct process *p, struct open_file *file)
{
	size_t length = some_length(p);
	off_t size = size_of(file);
	off_t offset = size && rng_percent(p, 80) ? (off_t)(rng_next(p) % (uint64_t)size) :
						    some_offset(p);
	ssize_t got[SIDES];
	int error[SIDES];

	note(p, "pread(%s, %zu bytes, at %lld)", file->path, length, (long long)offset);
	for (int side = TEST; side < SIDES; side++) {
		got[side] = pread(file->fd[side], p->buffer[side], length, offset);
		error[side] = errno;
	}
	if (!same_result(p, "pread", got[TEST], error[TEST], got[REFERENCE], error[REFERENCE]))
		return;
	for (ssize_t n = 0; n < got[TEST]; n++) {
		if (p->buffer[TEST][n] == p->buffer[REFERENCE][n])
			continue;
		mismatch(p, "%s: byte %lld reads %02x, right is %02x", file->path,
			 (long long)offset + n, p->buffer[TEST][n], p->buffer[REFERENCE][n]);
		return;
	}
}

static void op_ftruncate(struct process *p, struct open_file *file)
{
	off_t size = rng_percent(p, 95) ? rng_below(p, 3 * LONGEST) :
					  (off_t)(rng_next(p) >> 24);
	int result[SIDES], error[SIDES];

	note(p, "ftruncate(%s, %lld)", file->path, (long long)size);
	for (int side = TEST; side < SIDES; side++) {
		result[side] = ftruncate(file->fd[side], size);
		error[side] = errno;
		if (side == TEST && no_space(p, result[TEST], error[TEST]))
			return;
	}
	same_result(p, "ftruncate", result[TEST], error[TEST], result[REFERENCE],
		    error[REFERENCE]);
}

/* tmpfs zeroes no ranges: punch and, where the size is to follow, grow. */
static int zero_range(int fd, int mode, off_t offset, off_t length)
{
	struct stat found;

	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length) < 0 ||
	    fstat(fd, &found) < 0)
		return -1;
	if ((mode & FALLOC_FL_KEEP_SIZE) || found.st_size >= offset + length)
		return 0;
	return ftruncate(fd, offset + length);
}

static int fallocate_reference(int fd, int mode, off_t offset, off_t length)
{
	if (mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE))
		return shift_reference(fd, mode, offset, length);
	if (mode & FALLOC_FL_ZERO_RANGE)
		return zero_range(fd, mode, offset, length);
	return fallocate(fd, mode, offset, length);
}

static void fallocate_both(struct process *p, struct open_file *file, int mode, off_t offset,
			   off_t length)
{
	int result[SIDES], error[SIDES];

	note(p, "fallocate(%s, %#x, %lld, %lld)", file->path, (unsigned int)mode,
	     (long long)offset, (long long)length);
	for (int side = TEST; side < SIDES; side++) {
		result[side] = side == TEST ?
				       fallocate(file->fd[side], mode, offset, length) :
				       fallocate_reference(file->fd[side], mode, offset, length);
		error[side] = errno;
		if (side == TEST && no_space(p, result[TEST], error[TEST])) {
			stamp(p, file);
			return;
		}
	}
	same_result(p, "fallocate", result[TEST], error[TEST], result[REFERENCE],
		    error[REFERENCE]);
	if (file->writable)
		stamp(p, file);
}

static void op_fallocate(struct process *p, struct open_file *file)
{
	int modes[5], possible = 0, mode;
	off_t offset = rng_below(p, 2 * LONGEST);
	off_t length = 1 + rng_below(p, LONGEST);

	if (p->can->fallocate) {
		modes[possible++] = 0;
		modes[possible++] = FALLOC_FL_KEEP_SIZE;
	}
	if (p->can->punch)
		modes[possible++] = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	/* One that finds no space may have zeroed some of the range. */
	if (p->can->zero_range && !p->options->full) {
		modes[possible++] = FALLOC_FL_ZERO_RANGE;
		modes[possible++] = FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
	}
	if (!possible)
		return;
	mode = modes[rng_below(p, (uint32_t)possible)];
	if (rng_percent(p, 40)) {
		offset &= ~(off_t)(BLOCK - 1);
		length = (length + BLOCK - 1) & ~(off_t)(BLOCK - 1);
	}
	fallocate_both(p, file, mode, offset, length);
}

/* Blocks are taken out of a file, or put in; now and then with what is to be refused. */
static void op_shift(struct process *p, struct open_file *file)
{
	int mode = rng_percent(p, 50) ? FALLOC_FL_COLLAPSE_RANGE : FALLOC_FL_INSERT_RANGE;
	off_t offset = (off_t)BLOCK * rng_below(p, 3 * LONGEST / BLOCK);
	off_t length = (off_t)BLOCK * (1 + rng_below(p, rng_percent(p, 70) ? 4 : 40));

	if (!p->can->shift)
		return;
	if (rng_percent(p, 5))
		offset += 1 + rng_below(p, BLOCK);
	fallocate_both(p, file, mode, offset, length);
}

/* Compare a file's bytes through mappings, or change some of them. */
static void op_map(struct process *p, struct open_file *file)
{
	bool store = file->readable && file->writable && !p->options->full && rng_percent(p, 60);
	off_t size = size_of(file);
	off_t offset = size ? (off_t)(rng_next(p) % (uint64_t)size) & ~(off_t)(BLOCK - 1) : 0;
	size_t length = size - offset < LONGEST ? (size_t)(size - offset) : LONGEST;
	unsigned char *map[SIDES];
	size_t at;

	struct stat found;

	if (!length || !file->readable)
		return;
	/* Access beyond the end would be a signal. */
	if (fstat(file->fd[TEST], &found) < 0 || found.st_size != size) {
		mismatch(p, "%s has %lld bytes, right are %lld", file->path,
			 (long long)found.st_size, (long long)size);
		return;
	}
	note(p, "mmap(%s, %zu bytes, at %lld, %s)", file->path, length, (long long)offset,
	     store ? "written" : "read");
	for (int side = TEST; side < SIDES; side++) {
		map[side] = mmap(NULL, length, PROT_READ | (store ? PROT_WRITE : 0), MAP_SHARED,
				 file->fd[side], offset);
		if (map[side] != MAP_FAILED)
			continue;
		mismatch(p, "mmap of %s: %s", file->path, strerror(errno));
		if (side == REFERENCE)
			munmap(map[TEST], length);
		return;
	}
	at = rng_below(p, (uint32_t)length);
	if (store) {
		size_t part = 1 + rng_below(p, (uint32_t)(length - at));

		rng_fill(p, p->buffer[TEST], part);
		for (int side = fault_due(p, "lost-mmap") ? REFERENCE : TEST; side < SIDES; side++)
			memcpy(map[side] + at, p->buffer[TEST], part);
		if (rng_percent(p, 30) && msync(map[TEST], length, MS_SYNC) < 0)
			mismatch(p, "msync of %s: %s", file->path, strerror(errno));
	}
	for (size_t n = 0; n < length; n++) {
		if (map[TEST][n] == map[REFERENCE][n])
			continue;
		mismatch(p, "%s: byte %lld is %02x in the mapping, right is %02x", file->path,
			 (long long)offset + (long long)n, map[TEST][n], map[REFERENCE][n]);
		break;
	}
	for (int side = TEST; side < SIDES; side++)
		munmap(map[side], length);
	/* A store through a mapping sets the time when the file system pleases. */
	if (store)
		stamp(p, file);
}

/*
 * Read or write the side under test past the page cache, at whole blocks. Both are opened anew:
 * a write through a descriptor with O_APPEND goes to the end wherever it is sent.
 */
static void op_direct(struct process *p, struct open_file *file)
{
	size_t length = BLOCK * (1 + rng_below(p, 8));
	off_t offset = (off_t)BLOCK * rng_below(p, 40);
	bool store = file->writable && rng_percent(p, 50);
	int flags = store ? O_WRONLY : O_RDONLY;
	ssize_t done[SIDES] = { 0 };
	int error[SIDES];

	if (!p->can->direct || (!store && !file->readable))
		return;
	note(p, "direct %s(%s, %zu bytes, at %lld)", store ? "write" : "read", file->path, length,
	     (long long)offset);
	if (store)
		rng_fill(p, p->buffer[TEST], length);
	for (int side = TEST; side < SIDES; side++) {
		char path[64];
		int fd;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd[side]);
		fd = (int)OF_PROC(open(path, flags | (side == TEST ? O_DIRECT : 0) | O_CLOEXEC));
		if (fd < 0) {
			mismatch(p, "open(%s) anew: %s", file->path, strerror(errno));
			return;
		}
		done[side] = store ? pwrite(fd, p->buffer[TEST], length, offset) :
				     pread(fd, p->buffer[side], length, offset);
		error[side] = errno;
		close(fd);
		if (side == TEST && store && no_space(p, done[side], error[side]))
			return;
		if (side == TEST && store && p->options->full && done[side] > 0)
			length = (size_t)done[side];
	}
	if (same_result(p, "direct I/O", done[TEST], error[TEST], done[REFERENCE],
			error[REFERENCE]) && !store && done[TEST] > 0 &&
	    memcmp(p->buffer[TEST], p->buffer[REFERENCE], (size_t)done[TEST]))
		mismatch(p, "%s: a direct read at %lld gives other bytes", file->path,
			 (long long)offset);
}

static void op_attributes(struct process *p, struct open_file *file)
{
	struct stat found[SIDES];

	note(p, "fstat(%s)", file->path);
	for (int side = TEST; side < SIDES; side++)
		if (fstat(file->fd[side], &found[side]) < 0)
			mismatch(p, "fstat(%s): %s", file->path, strerror(errno));
	compare_stats(p, file->path, &found[TEST], &found[REFERENCE]);
	if (!p->failed)
		stamp(p, file);
}

static void op_sync(struct process *p, struct open_file *file)
{
	bool data = rng_percent(p, 50);

	note(p, "%s(%s)", data ? "fdatasync" : "fsync", file->path);
	if ((data ? fdatasync(file->fd[TEST]) : fsync(file->fd[TEST])) < 0)
		mismatch(p, "fsync(%s): %s", file->path, strerror(errno));
}

void close_file(struct process *p, struct open_file *file)
{
	note(p, "close(%s)", file->path);
	if (file->readable && rng_percent(p, 25))
		compare_contents(p, file->path, file->fd[TEST], file->fd[REFERENCE]);
	for (int side = TEST; side < SIDES; side++) {
		if (close(file->fd[side]) < 0)
			mismatch(p, "close(%s): %s", file->path, strerror(errno));
		file->fd[side] = -1;
	}
}

/* One operation on an open file, chosen by the process's random numbers. */
void file_operation(struct process *p, struct open_file *file)
{
	static const struct {
		unsigned int weight;
		void (*operation)(struct process *p, struct open_file *file);
	} table[] = {
		{ 31, op_write }, { 22, op_read }, { 9, op_ftruncate }, { 12, op_map },
		{ 6, op_fallocate }, { 3, op_shift }, { 5, op_direct }, { 4, op_attributes },
		{ 3, op_sync },
	};
	uint32_t choice = rng_below(p, 100);
	struct stat found;

	/* A directory that was opened for reading is only good for that. */
	if (fstat(file->fd[REFERENCE], &found) < 0 || !S_ISREG(found.st_mode)) {
		file->readable = false;
		close_file(p, file);
		return;
	}
	for (size_t n = 0; n < sizeof(table) / sizeof(*table); n++) {
		if (choice < table[n].weight) {
			table[n].operation(p, file);
			return;
		}
		choice -= table[n].weight;
	}
	close_file(p, file);
}
