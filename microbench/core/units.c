// SPDX-License-Identifier: GPL-2.0-only
#include "units.h"

const struct stock_desc stock_of_files = { .unit = "file", .bytes = 2048, .inodes = 1 };

const struct option_desc unit_options[] = { KEEP_OPTION("files"), { .name = NULL } };

void units_private(const struct worker *w, struct name *name, const char *suffix)
{
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "%u/", w->id);
	name_init(name, prefix, suffix);
}

void units_shared(const struct worker *w, struct name *name, const char *suffix)
{
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "share/%u.", w->id);
	name_init(name, prefix, suffix);
}

enum outcome units_each(struct worker *w, struct name *name, uint64_t count, unit_call *call)
{
	for (; count; count--, name_next(name))
		if (call(w, name->path))
			return OP_FAILED;
	return OP_OK;
}

enum outcome units_create(struct worker *w, struct name *fresh, uint64_t stock)
{
	uint64_t left = w->stock - w->next;

	return units_each(w, fresh, stock - left, file_create);
}

enum outcome units_return(struct worker *w, struct name *renamed, struct name *fresh,
			  uint64_t stock)
{
	for (uint64_t i = 0; i < w->next; i++, name_next(renamed), name_next(fresh))
		if (file_rename(w, renamed->path, fresh->path))
			return OP_FAILED;
	return units_each(w, fresh, stock - w->stock, file_create);
}
