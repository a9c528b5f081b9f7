// SPDX-License-Identifier: GPL-2.0-only
#include "tree.h"

#include <errno.h>
#include <stdio.h>

#include "files.h"

static const char *const accesses[] = { "open", "stat", NULL };

const struct option_desc lookup_options[] = {
	{ .name = "access", .help = "system call per operation: open (and close) as in the paper, or stat",
	  .choices = accesses },
	{ .name = NULL },
};

void lookup_init(const struct worker *w, struct lookup *lookup, const char *path)
{
	lookup->stat = !strcmp(option_text(w, "access"), "stat");
	snprintf(lookup->path, sizeof(lookup->path), "%s", path);
}

static enum outcome make_parents(struct worker *w, const char *path)
{
	char dir[32];

	snprintf(dir, sizeof(dir), "%s", path);
	for (char *slash = strchr(dir, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (dir_make(w, dir))
			return OP_FAILED;
		*slash = '/';
	}
	return OP_OK;
}

/* Another worker may have made a shared one first. */
static enum outcome make_leaf(struct worker *w, const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	if (fd < 0)
		return worker_fail(w, "open", path);
	return close(fd) ? worker_fail(w, "close", path) : OP_OK;
}

enum outcome tree_make_file(struct worker *w, const char *path)
{
	return make_parents(w, path) ? OP_FAILED : make_leaf(w, path);
}

enum outcome tree_make(struct worker *w)
{
	const uint64_t fanout = 1 << TREE_FANOUT_BITS;
	char path[32];

	tree_path_init(path);
	for (uint64_t dir = w->id; dir < TREE_PATHS / fanout; dir += w->workers) {
		tree_path(path, dir * fanout);
		if (make_parents(w, path))
			return OP_FAILED;
		for (uint64_t leaf = 0; leaf < fanout; leaf++) {
			tree_path(path, dir * fanout + leaf);
			if (make_leaf(w, path))
				return OP_FAILED;
		}
	}
	return OP_OK;
}
