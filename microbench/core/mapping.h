/* SPDX-License-Identifier: GPL-2.0-only */
/* Page faults: a range of a file that is mapped, and mapped anew after its last page. */
#ifndef FSCALE_MAPPING_H
#define FSCALE_MAPPING_H

#include <sys/mman.h>
#include <sys/types.h>

#include "workload.h"

extern const struct option_desc mapping_options[];

struct mapping {
	volatile char *start;
	size_t size, page;	/* bytes */
	size_t next;		/* the first byte of the page that comes next */
	off_t offset;		/* of the range in the file */
	int fd;
};

/*
 * Map range number `number` of the file. It has as many pages as the option `pages` says, all in
 * blocks on the medium, so that a fault reads nothing and allocates none.
 */
enum outcome mapping_open(struct worker *w, struct mapping *m, const char *path,
			  unsigned int number);

static inline enum outcome mapping_map(struct worker *w, struct mapping *m)
{
	m->start = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, m->offset);
	m->next = 0;
	return m->start == MAP_FAILED ? worker_fail(w, "mmap", NULL) : OP_OK;
}

/* One operation: write to the next page, which faults. */
static inline enum outcome mapping_touch(struct worker *w, struct mapping *m)
{
	m->start[m->next] = 1;
	m->next += m->page;
	if (__builtin_expect(m->next < m->size, 1))
		return OP_OK;
	if (munmap((void *)m->start, m->size))
		return worker_fail(w, "munmap", NULL);
	return mapping_map(w, m);
}

#endif
