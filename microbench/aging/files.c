// SPDX-License-Identifier: GPL-2.0-only
#include "files.h"

#include <stdlib.h>

static bool before(const struct file *one, const struct file *other)
{
	return one->death < other->death;
}

bool files_add(struct files *files, struct file file)
{
	size_t at = files->count;

	if (files->count == files->room) {
		size_t room = files->room ? files->room * 2 : 1024;
		struct file *heap = reallocarray(files->heap, room, sizeof(*heap));

		if (!heap)
			return false;
		files->heap = heap;
		files->room = room;
	}
	for (; at && before(&file, &files->heap[(at - 1) / 2]); at = (at - 1) / 2)
		files->heap[at] = files->heap[(at - 1) / 2];
	files->heap[at] = file;
	files->count++;
	return true;
}

struct file files_take_first(struct files *files)
{
	struct file first = files->heap[0], moved = files->heap[--files->count];
	size_t at = 0, child;

	for (; (child = 2 * at + 1) < files->count; at = child) {
		if (child + 1 < files->count && before(&files->heap[child + 1], &files->heap[child]))
			child++;
		if (!before(&files->heap[child], &moved))
			break;
		files->heap[at] = files->heap[child];
	}
	files->heap[at] = moved;
	return first;
}
