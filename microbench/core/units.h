/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stocks of numbered files, one an operation (MWC*, MWU*, MWR*).
 *
 * Names count on from window to window. None is used twice: the kernel remembers
 * that a name is gone (a negative dentry), and where it does, the file system is
 * not asked.
 */
#ifndef FSCALE_UNITS_H
#define FSCALE_UNITS_H

#include "files.h"
#include "names.h"
#include "workload.h"

typedef enum outcome unit_call(struct worker *w, const char *path);

extern const struct stock_desc stock_of_files;
extern const struct option_desc unit_options[];

/* The first of the names "$ID/$N" or "share/$ID.$N", with a suffix. */
void units_private(const struct worker *w, struct name *name, const char *suffix);
void units_shared(const struct worker *w, struct name *name, const char *suffix);

/* Do `call` to `count` names, from *name on, which is left behind the last. */
enum outcome units_each(struct worker *w, struct name *name, uint64_t count, unit_call *call);

/* Fill up to `stock` with new files. */
enum outcome units_create(struct worker *w, struct name *fresh, uint64_t stock);

/* The same, but the files that were renamed, to *renamed and so on, are renamed again and stay. */
enum outcome units_return(struct worker *w, struct name *renamed, struct name *fresh,
			  uint64_t stock);

/* One operation: `call` on the next file. Inlined, so that `call` is no pointer any more. */
static inline __attribute__((always_inline)) enum outcome
unit_use(struct worker *w, struct name *name, unit_call *call)
{
	if (w->next == w->stock)
		return OP_EXHAUSTED;
	if (call(w, name->path))
		return OP_FAILED;
	name_next(name);
	w->next++;
	return OP_OK;
}

/* One operation of a steady state: a new file, and the oldest goes. */
static inline enum outcome unit_push(struct worker *w, struct name *fresh, struct name *oldest)
{
	if (file_create(w, fresh->path) || file_unlink(w, oldest->path))
		return OP_FAILED;
	name_next(fresh);
	name_next(oldest);
	return OP_OK;
}

/* The same the other way round. */
static inline enum outcome unit_pull(struct worker *w, struct name *oldest, struct name *fresh)
{
	if (file_unlink(w, oldest->path) || file_create(w, fresh->path))
		return OP_FAILED;
	name_next(oldest);
	name_next(fresh);
	return OP_OK;
}

/* One operation: rename the next file. */
static inline enum outcome unit_rename(struct worker *w, struct name *from, struct name *to)
{
	if (w->next == w->stock)
		return OP_EXHAUSTED;
	if (file_rename(w, from->path, to->path))
		return OP_FAILED;
	name_next(from);
	name_next(to);
	w->next++;
	return OP_OK;
}

#endif
