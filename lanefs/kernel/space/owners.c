// SPDX-License-Identifier: GPL-2.0-only
/* The owner table of a log: the inode of each data block (format.h). */
#include "core/owner.h"
#include "space/space.h"

/* Inode `ino` maps `count` logical blocks from `logical` on to the domain's blocks from `start` on. */
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
