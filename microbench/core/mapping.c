// SPDX-License-Identifier: GPL-2.0-only
#include "mapping.h"

#include <stdlib.h>
#include <unistd.h>

#include "paths.h"

const struct option_desc mapping_options[] = {
	{ .name = "pages", .help = "pages of a worker's range, which is mapped anew after the last one",
	  .value = 256, .min = 1, .max = 1 << 20 },
	{ .name = NULL },
};

static enum outcome lay_out(struct worker *w, const struct mapping *m, const char *path)
{
	enum outcome outcome = OP_OK;
	char *page = calloc(1, m->page);

	if (!page)
		return worker_fail(w, "calloc", NULL);
	for (size_t at = 0; at < m->size && !outcome; at += m->page) {
		ssize_t n = pwrite(m->fd, page, m->page, m->offset + (off_t)at);

		if (n != (ssize_t)m->page)
			outcome = worker_short(w, "pwrite", path, n, (long)m->page);
	}
	if (!outcome && fsync(m->fd))
		outcome = worker_fail(w, "fsync", path);
	free(page);
	return outcome;
}

enum outcome mapping_open(struct worker *w, struct mapping *m, const char *path,
			  unsigned int number)
{
	*m = (struct mapping){ .page = (size_t)sysconf(_SC_PAGESIZE) };
	m->size = m->page * (size_t)option_number(w, "pages");
	m->offset = (off_t)(number * m->size);
	if (file_open(w, path, &m->fd) || lay_out(w, m, path))
		return OP_FAILED;
	return mapping_map(w, m);
}
