// SPDX-License-Identifier: GPL-2.0-only
/*
 * catd (SpanFS, ATC'15, section 4.2.1): every worker creates its files in a private directory,
 * appends 4 KB to each and fsyncs it, truncates each to nothing, and deletes them, one after the
 * other. Each phase begins for all workers together and is timed by itself.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "personality.h"

#define APPEND_SIZE 4096

struct catd {
	int root;
	char path[PATH_MAX];
	char data[APPEND_SIZE];
};

static const char *const phase_names[] = { "create", "append", "truncate", "delete" };

static int setup(struct state *state, unsigned int id, void **own)
{
	struct catd *c = calloc(1, sizeof(*c));
	struct worker *worker = &state->worker[id];
	const struct options *o = state->options;

	if (!c)
		return failed(worker, "malloc", "buffer");
	*own = c;
	memset(c->data, 'c', sizeof(c->data));
	snprintf(c->path, sizeof(c->path), "%s/worker%u", o->dirs[id % o->ndirs], id);
	if (mkdir(c->path, 0755))
		return failed(worker, "mkdir", c->path);
	c->root = open(c->path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	return c->root < 0 ? failed(worker, "open", c->path) : 0;
}

static int create(struct catd *c, struct worker *worker)
{
	int fd = openat(c->root, c->path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	if (fd < 0)
		return failed(worker, "open", c->path);
	return close(fd) ? failed(worker, "close", c->path) : 0;
}

static int append(struct catd *c, struct worker *worker)
{
	int fd = openat(c->root, c->path, O_WRONLY | O_APPEND | O_CLOEXEC);
	int result = 0;

	if (fd < 0)
		return failed(worker, "open", c->path);
	if (write(fd, c->data, APPEND_SIZE) != APPEND_SIZE)
		result = failed(worker, "write", c->path);
	else if (fsync(fd))
		result = failed(worker, "fsync", c->path);
	if (close(fd) && !result)
		result = failed(worker, "close", c->path);
	moved(worker, APPEND_SIZE);
	return result;
}

static int cut(struct catd *c, struct worker *worker)
{
	int fd = openat(c->root, c->path, O_WRONLY | O_CLOEXEC);
	int result = 0;

	if (fd < 0)
		return failed(worker, "open", c->path);
	if (ftruncate(fd, 0))
		result = failed(worker, "ftruncate", c->path);
	if (close(fd) && !result)
		result = failed(worker, "close", c->path);
	return result;
}

static int discard(struct catd *c, struct worker *worker)
{
	return unlinkat(c->root, c->path, 0) ? failed(worker, "unlink", c->path) : 0;
}

static int run(struct state *state, unsigned int id, void *own, unsigned int phase)
{
	static int (*const steps[])(struct catd *, struct worker *) = { create, append, cut,
									 discard };
	struct worker *worker = &state->worker[id];
	struct catd *c = own;
	unsigned int i;

	for (i = 0; i < state->options->files; i++) {
		snprintf(c->path, sizeof(c->path), "f%u", i);
		if (steps[phase](c, worker))
			return -1;
		did(worker, 1);
	}
	return 0;
}

const struct personality catd = {
	.name = "catd",
	.phases = 4,
	.phase_names = phase_names,
	.setup = setup,
	.run = run,
};
