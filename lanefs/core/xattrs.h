/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_CORE_XATTRS_H
#define LANEFS_CORE_XATTRS_H

#include "shim.h"
#include "../format.h"

/*
 * A block of extended attributes: packed entries, sorted by namespace and name, from byte 64 to
 * byte lh_used. All functions but lanefs_xattrs_valid() need a block that it accepted, or one that
 * lanefs_xattrs_clear() emptied. None touches the checksum.
 */

/* Whether all entries lie within the block, in order, with legal names, and are ACLs where they say so. */
bool lanefs_xattrs_valid(const void *block);

/* No entries. */
void lanefs_xattrs_clear(void *block);

/* The entry behind @entry, or the first one if that is NULL; NULL: there is none. */
struct lanefs_xattr *lanefs_xattrs_next(void *block, struct lanefs_xattr *entry);

/* The attribute of that name, or NULL. */
struct lanefs_xattr *lanefs_xattrs_find(void *block, u8 space, const void *name, size_t name_len);

static inline void *lanefs_xattr_value(struct lanefs_xattr *entry)
{
	return entry->xa_name + entry->xa_name_len;
}

/* Adds an attribute or gives it another value. -ENOSPC: no room, nothing is changed. */
int lanefs_xattrs_set(void *block, u8 space, const void *name, size_t name_len, const void *value,
		      size_t value_len);

void lanefs_xattrs_remove(void *block, struct lanefs_xattr *entry);

#endif
