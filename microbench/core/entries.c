// SPDX-License-Identifier: GPL-2.0-only
#include "entries.h"

#include "files.h"

const struct option_desc entries_options[] = {
	{ .name = "entries", .help = "files per directory", .value = 1000, .min = 1,
	  .max = 10000000 },
	{ .name = NULL },
};

enum outcome entries_make(struct worker *w, const char *path, unsigned int first, unsigned int step)
{
	uint64_t count = (uint64_t)option_number(w, "entries");
	struct name name;
	char prefix[32];

	if (dir_make(w, path))
		return OP_FAILED;
	snprintf(prefix, sizeof(prefix), "%s/", path);
	name_init(&name, prefix, "");
	for (uint64_t number = first; number < count; number += step) {
		name_set(&name, number);
		if (file_create(w, name.path))
			return OP_FAILED;
	}
	return OP_OK;
}

enum outcome entries_open(struct worker *w, struct entries *e, const char *path)
{
	snprintf(e->path, sizeof(e->path), "%s", path);
	e->stream = opendir(path);
	return e->stream ? OP_OK : worker_fail(w, "opendir", path);
}

static void renamer_names(struct renamer *r)
{
	char prefix[32] = "share/";

	if (r->dirs)
		snprintf(prefix, sizeof(prefix), "%u/", r->dir);
	name_init(&r->from, prefix, "");
	name_init(&r->to, prefix, ".2");
}

void renamer_init(const struct worker *w, struct renamer *r, unsigned int dirs)
{
	*r = (struct renamer){ .dirs = dirs, .count = (uint64_t)option_number(w, "entries") };
	renamer_names(r);
}

static void renamer_advance(struct renamer *r)
{
	r->back = !r->back;
	if (r->back)
		return;
	if (r->dirs)
		r->dir = (r->dir + 1) % r->dirs;
	if (!r->dir)
		r->number = (r->number + 1) % r->count;
	renamer_names(r);
	name_set(&r->from, r->number);
	name_set(&r->to, r->number);
}

enum outcome renamer_next(struct worker *w, struct renamer *r)
{
	const char *from = r->back ? r->to.path : r->from.path;
	const char *to = r->back ? r->from.path : r->to.path;

	if (file_rename(w, from, to))
		return OP_FAILED;
	renamer_advance(r);
	return OP_OK;
}
