// SPDX-License-Identifier: GPL-2.0-only
#include "copyup.h"

#define FILE_SIZE 4096

/* A file exists in both layers once it was copied up. */
const struct stock_desc stock_of_lower_files = { .unit = "file", .bytes = 4 * FILE_SIZE, .inodes = 2 };

void copyup_init(struct copyup *c)
{
	overlay_name(&c->overlay, &c->next, "merged");
	overlay_name(&c->overlay, &c->lower, "lower");
	overlay_name(&c->overlay, &c->upper, "upper");
	overlay_name(&c->overlay, &c->fresh, "lower");
}

static enum outcome make(struct worker *w, const char *path)
{
	static const char block[FILE_SIZE] = "a";
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	ssize_t done;

	if (fd < 0)
		return worker_fail(w, "open", path);
	done = write(fd, block, sizeof(block));
	if (done != (ssize_t)sizeof(block))
		return worker_short(w, "write", path, done, sizeof(block));
	return close(fd) ? worker_fail(w, "close", path) : OP_OK;
}

enum outcome copyup_fill(struct worker *w, struct copyup *c, uint64_t stock)
{
	uint64_t left = w->stock - w->next;

	if (overlay_unmount(w, &c->overlay) ||
	    units_each(w, &c->upper, w->next, file_unlink) ||
	    units_each(w, &c->lower, w->next, file_unlink) ||
	    units_each(w, &c->fresh, stock - left, make))
		return OP_FAILED;
	return overlay_mount(w, &c->overlay);
}
