/* SPDX-License-Identifier: GPL-2.0-only */
/* A stock of files in the lower layer of an overlay, each of which is copied up once. */
#ifndef FSCALE_COPYUP_H
#define FSCALE_COPYUP_H

#include "overlay.h"
#include "units.h"

extern const struct stock_desc stock_of_lower_files;

struct copyup {
	struct overlay overlay;
	struct name next;			/* in the overlay */
	struct name lower, upper, fresh;	/* the first that has both, and the next to be made */
};

void copyup_init(struct copyup *c);
/* Remove files that were copied up, from both layers, and make the stock full. */
enum outcome copyup_fill(struct worker *w, struct copyup *c, uint64_t stock);

static inline enum outcome open_for_writing(struct worker *w, const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return worker_fail(w, "open", path);
	return close(fd) ? worker_fail(w, "close", path) : OP_OK;
}

/* One operation. */
static inline enum outcome copyup_next(struct worker *w, struct copyup *c)
{
	return unit_use(w, &c->next, open_for_writing);
}

#endif
