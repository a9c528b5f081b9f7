// SPDX-License-Identifier: GPL-2.0-only
/*
 * Varmail and fileserver, as Filebench's personalities of these names define them; parameters as
 * SpanFS (ATC'15, section 4.2.3) gives them. One operation is one step (open, read, fsync, ...),
 * as Filebench counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fileset.h"
#include "personality.h"

#define IO_SIZE (1 << 20)  /* SpanFS: "1 MB I/O size" */
#define PREALLOCATED 80    /* per cent of the files that exist at the start, as in Filebench */
#define SIZE_LIMIT 16      /* no file is larger than this many times the mean */

struct flow {
	struct state *state;
	struct worker *worker;
	struct fileset *set;
	uint64_t random;
	int root;
	char *buffer;
	char path[PATH_MAX];
};

/* Gamma distributed with shape 1.5, as Filebench draws file sizes: an exponential and half of a
 * squared normal (Box-Muller) added up. */
static unsigned int draw_size(struct flow *f, unsigned int mean)
{
	double angle = cos(2 * M_PI * draw_unit(&f->random));
	double gamma = -log(draw_unit(&f->random)) - log(draw_unit(&f->random)) * angle * angle;

	return (unsigned int)fmin(fmax(1, gamma / 1.5 * mean), (double)SIZE_LIMIT * mean);
}

static unsigned int draw_append(struct flow *f)
{
	return 1 + (unsigned int)draw_below(&f->random, 2 * (uint64_t)f->state->options->append - 1);
}

static int step_failed(struct flow *f, const char *call)
{
	return failed(f->worker, call, f->path);
}

/* Other workers use all files of the set that this step could take. */
static int no_file(struct flow *f, const char *state)
{
	snprintf(f->worker->error, sizeof(f->worker->error),
		 "none of the %u files of the file set is %s; use a larger --files", f->set->count,
		 state);
	return -1;
}

static int write_all(struct flow *f, int fd, unsigned int bytes)
{
	unsigned int left = bytes, chunk;
	ssize_t n;

	for (; left; left -= (unsigned int)n) {
		chunk = left < IO_SIZE ? left : IO_SIZE;
		n = write(fd, f->buffer, chunk);
		if (n <= 0)
			return step_failed(f, "write");
	}
	moved(f->worker, bytes);
	did(f->worker, 1);
	return 0;
}

static int read_all(struct flow *f, int fd)
{
	unsigned long bytes = 0;
	ssize_t n;

	while ((n = read(fd, f->buffer, IO_SIZE)) > 0)
		bytes += (unsigned long)n;
	if (n < 0)
		return step_failed(f, "read");
	moved(f->worker, bytes);
	did(f->worker, 1);
	return 0;
}

static int sync_file(struct flow *f, int fd)
{
	if (fsync(fd))
		return step_failed(f, "fsync");
	did(f->worker, 1);
	return 0;
}

enum { CREATE = 1, WRITE = 2, READ = 4, APPEND = 8, SYNC = 16 };

/* Open a file, or create one that does not exist, do `steps`, close it. */
static int visit(struct flow *f, unsigned int steps)
{
	bool create = steps & CREATE;
	long index = fileset_take(f->set, create ? FILE_ABSENT : FILE_IDLE, &f->random);
	int flags = O_CLOEXEC | O_RDWR | (create ? O_CREAT | O_EXCL : 0);
	int fd, result = 0;

	if (index < 0)
		return no_file(f, create ? "absent" : "idle");
	fileset_path(f->set, (unsigned int)index, f->path, sizeof(f->path));
	fd = openat(f->root, f->path, flags | (steps & APPEND ? O_APPEND : 0), 0644);
	if (fd < 0)
		return step_failed(f, "open");
	did(f->worker, 1);
	if (steps & WRITE)
		result = write_all(f, fd, draw_size(f, f->state->options->size));
	if (!result && steps & READ)
		result = read_all(f, fd);
	if (!result && steps & APPEND)
		result = write_all(f, fd, draw_append(f));
	if (!result && steps & SYNC)
		result = sync_file(f, fd);
	if (close(fd) && !result)
		return step_failed(f, "close");
	did(f->worker, 1);
	fileset_put(f->set, index, FILE_IDLE);
	return result;
}

static int delete_one(struct flow *f)
{
	long index = fileset_take(f->set, FILE_IDLE, &f->random);

	if (index < 0)
		return no_file(f, "idle");
	fileset_path(f->set, (unsigned int)index, f->path, sizeof(f->path));
	if (unlinkat(f->root, f->path, 0))
		return step_failed(f, "unlink");
	fileset_put(f->set, index, FILE_ABSENT);
	did(f->worker, 1);
	return 0;
}

static int stat_one(struct flow *f)
{
	long index = fileset_take(f->set, FILE_IDLE, &f->random);
	struct stat st;

	if (index < 0)
		return no_file(f, "idle");
	fileset_path(f->set, (unsigned int)index, f->path, sizeof(f->path));
	if (fstatat(f->root, f->path, &st, 0))
		return step_failed(f, "stat");
	fileset_put(f->set, index, FILE_IDLE);
	did(f->worker, 1);
	return 0;
}

static int varmail_round(struct state *state, unsigned int id, void *own, unsigned int phase)
{
	(void)state, (void)id, (void)phase;
	return delete_one(own) || visit(own, CREATE | APPEND | SYNC) ||
	       visit(own, READ | APPEND | SYNC) || visit(own, READ);
}

static int fileserver_round(struct state *state, unsigned int id, void *own, unsigned int phase)
{
	(void)state, (void)id, (void)phase;
	return visit(own, CREATE | WRITE) || visit(own, APPEND) || visit(own, READ) ||
	       delete_one(own) || stat_one(own);
}

static int prepare(struct state *state)
{
	unsigned int i, sets = state->options->shared ? 1 : state->options->workers;
	struct fileset *set = shared_alloc(sets * sizeof(*set));

	if (state->options->shared && state->options->ndirs > 1) {
		fputs("--shared takes one --dir: a shared file set cannot be on several partitions\n", stderr);
		return -1;
	}
	for (i = 0; i < sets; i++)
		fileset_init(&set[i], state->options->files, state->options->width);
	state->files = set;
	return 0;
}

/* Worker `id` makes its own set; a shared one is filled by all, each its part. */
static int fill(struct flow *f, unsigned int id)
{
	const struct options *o = f->state->options;
	unsigned int i, first = o->shared ? id : 0, by = o->shared ? o->workers : 1;
	int fd;

	for (i = first; i < f->set->count; i += by) {
		if (draw_below(&f->random, 100) >= PREALLOCATED)
			continue;
		fileset_path(f->set, i, f->path, sizeof(f->path));
		fd = openat(f->root, f->path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
		if (fd < 0)
			return step_failed(f, "open");
		if (write_all(f, fd, draw_size(f, o->size))) {
			close(fd);
			return -1;
		}
		if (close(fd))
			return step_failed(f, "close");
		fileset_put(f->set, i, FILE_IDLE);
	}
	return 0;
}

static int make_directories(struct flow *f, unsigned int id)
{
	const struct options *o = f->state->options;

	if (!o->shared || id == 0) {
		if (fileset_directories(f->set, f->root, f->path, sizeof(f->path)))
			return step_failed(f, "mkdir");
		atomic_store(&f->state->worker[id].ready, 1);
	}
	/* The others of a shared set wait for worker 0. */
	while (o->shared && !atomic_load(&f->state->worker[0].ready)) {
		if (atomic_load(&f->state->barrier) == BARRIER_STOP)
			return -1;
		usleep(1000);
	}
	return 0;
}

static int setup(struct state *state, unsigned int id, void **own)
{
	const struct options *o = state->options;
	struct flow *f = calloc(1, sizeof(*f));
	struct worker *worker = &state->worker[id];

	if (!f || posix_memalign((void **)&f->buffer, 4096, IO_SIZE))
		return failed(worker, "malloc", "buffer");
	memset(f->buffer, 'f', IO_SIZE);
	*own = f;
	f->state = state;
	f->worker = worker;
	f->set = (struct fileset *)state->files + (o->shared ? 0 : id);
	f->random = draw_seed(o->seed, id);
	snprintf(f->path, sizeof(f->path), "%s/set%u", o->dirs[id % o->ndirs], o->shared ? 0 : id);
	if (mkdir(f->path, 0755) && !(o->shared && errno == EEXIST))
		return step_failed(f, "mkdir");
	f->root = open(f->path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	if (f->root < 0)
		return step_failed(f, "open");
	return make_directories(f, id) || fill(f, id);
}

const struct personality varmail = {
	.name = "varmail",
	.phases = 1,
	.prepare = prepare,
	.setup = setup,
	.run = varmail_round,
};

const struct personality fileserver = {
	.name = "fileserver",
	.phases = 1,
	.prepare = prepare,
	.setup = setup,
	.run = fileserver_round,
};
