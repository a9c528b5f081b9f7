// SPDX-License-Identifier: GPL-2.0-only
/* The owner table of a log: the inode of each data block (format.h). */
#include "core/owner.h"
#include "space/space.h"

/**
 * lanefs_owners_set() - note in the owner table whose a log's blocks are
 * @h: the handle
 * @domain: whose blocks
 * @start: the first one
 * @count: how many
 * @ino: number of the inode that maps them
 * @logical: its logical block that is the first one
 *
 * Context: In a handle of the domain, a credit of which each block of the table takes; the blocks
 * are the caller's. May sleep for reads; takes b_mutex.
 * Return: 0 or the error of lanefs_buf_read(), after some entries may have been set.
 */
int lanefs_owners_set(struct lanefs_handle *h, struct lanefs_domain *domain, u64 start, u32 count,
		      u64 ino, u64 logical)
{
	struct lanefs_owner *owners;
	struct lanefs_buf *buf;
	u32 at, number;

	while (count) {
		number = div_u64_rem(start - domain->d_layout.base, LANEFS_OWNERS, &at);
		buf = lanefs_buf_read(domain->d_journal, domain->d_layout.owners + number,
				      LANEFS_MAGIC_OWNERS, domain->d_id);
		if (IS_ERR(buf))
			return PTR_ERR(buf);
		lanefs_buf_join(h, buf);
		/* Entries of others change at the same time; this one is of whoever has the block. */
		owners = lanefs_owners_of(buf->b_data);
		for (; count && at < LANEFS_OWNERS; at++, start++, logical++, count--)
			lanefs_owner_set(&owners[at], ino, logical);
		lanefs_buf_put(buf);
	}
	return 0;
}
