/* SPDX-License-Identifier: GPL-2.0-only */
/* Stocks of numbered files, one an operation (MWC*, MWU*, MWR*). */
#ifndef FSCALE_UNITS_H
#define FSCALE_UNITS_H

#include "files.h"
#include "names.h"
#include "workload.h"

/* Names "$ID/$N" and "share/$ID.$N", with a suffix. */
static inline void units_private(const struct worker *w, struct name *name, const char *suffix)
{
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "%u/", w->id);
	name_init(name, prefix, suffix);
}

static inline void units_shared(const struct worker *w, struct name *name, const char *suffix)
{
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "share/%u.", w->id);
	name_init(name, prefix, suffix);
}

/* Do `make` for the names of the numbers first .. end - 1; the name is left at 0. */
static inline enum outcome units_make(struct worker *w, struct name *name, uint64_t first,
				      uint64_t end,
				      enum outcome (*make)(struct worker *w, const char *path))
{
	name_set(name, first);
	for (uint64_t number = first; number < end; number++, name_next(name))
		if (make(w, name->path))
			return OP_FAILED;
	name_set(name, 0);
	return OP_OK;
}

/* Make the files anew that were used up, 0 .. next - 1, and those up to `stock`. */
static inline enum outcome units_refill(struct worker *w, struct name *name, uint64_t stock)
{
	if (units_make(w, name, 0, w->next, file_create))
		return OP_FAILED;
	return units_make(w, name, w->stock, stock, file_create);
}

/* Rename the numbers 0 .. end - 1 from `from` to `to`; both are left at 0. */
static inline enum outcome units_rename(struct worker *w, struct name *from, struct name *to,
					uint64_t end)
{
	name_set(from, 0);
	name_set(to, 0);
	for (uint64_t number = 0; number < end; number++, name_next(from), name_next(to))
		if (file_rename(w, from->path, to->path))
			return OP_FAILED;
	name_set(from, 0);
	name_set(to, 0);
	return OP_OK;
}

#endif
