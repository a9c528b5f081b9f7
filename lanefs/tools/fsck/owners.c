// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stage 1 of a log-structured file system: the owners of data blocks against the maps. It is the
 * maps that are believed: owners are there only so that the map of a block can be found.
 */
#include "core/owner.h"
#include "inodes.h"

static bool owners_good(struct check *c, u32 d, u64 n)
{
	u64 number = c->domain[d].layout.owners + n;
	u8 block[LANEFS_BLOCK_SIZE];

	read_block(c, number, block);
	return block_good(c, block, LANEFS_MAGIC_OWNERS, number, d);
}

/* Blocks @first to @end - 1 are damaged: they get their entries anew in check_owners(). */
static void repair_run(struct check *c, u32 d, u64 first, u64 end)
{
	u64 start = c->domain[d].layout.owners;

	if (first == end ||
	    !can_repair(&c->report, "domain %u: %llu blocks of the owner table are damaged (the first is"
		      " %llu)", d, end - first, start + first))
		return;
	for (u64 n = first; n < end; n++) {
		u8 block[LANEFS_BLOCK_SIZE] = { 0 };

		set_header(c, block, LANEFS_MAGIC_OWNERS, start + n, d);
		write_block(c, start + n, block);
	}
}

static void check_domain(struct check *c, u32 d)
{
	struct domain *domain = &c->domain[d];
	u64 first = 0, n;

	for (n = 0; n < domain->layout.owners_blocks; n++) {
		if (!owners_good(c, d, n)) {
			set_bit(domain->lost_owners, n, true);
			continue;
		}
		repair_run(c, d, first, n);
		first = n + 1;
	}
	repair_run(c, d, first, n);
}

void check_owners_blocks(struct check *c)
{
	c->owners_block = 0;
	for (u32 d = 0; d < c->domains; d++)
		check_domain(c, d);
}

static void write_owners(struct check *c)
{
	if (c->owners_changed)
		write_block(c, c->owners_block, c->owners);
	c->owners_changed = false;
}

/* The block that was read last stays: the blocks of a file mostly follow each other. */
static struct lanefs_owner *find_owner(struct check *c, const struct domain *domain, u64 block)
{
	u64 n = block - domain->layout.base, number = domain->layout.owners + n / LANEFS_OWNERS;

	if (c->owners_block != number) {
		write_owners(c);
		read_block(c, number, c->owners);
		c->owners_block = number;
	}
	return &lanefs_owners_of(c->owners)[n % LANEFS_OWNERS];
}

static bool owns(const struct lanefs_owner *owner, u64 ino, u32 logical)
{
	return lanefs_owner_ino(owner) == ino && le32_to_cpu(owner->ow_logical) == logical;
}

/* The blocks of an inode that have another owner. */
struct differences {
	u64 wrong;
	u64 first;			/* the first of them, and its owner */
	struct lanefs_owner owner;
	bool lost;			/* others have none, as their entries were lost */
};

static void compare(struct check *c, u64 ino, const struct lanefs_extent *extent,
		    struct differences *found)
{
	u32 length = le32_to_cpu(extent->ex_length) & ~LANEFS_EXTENT_UNWRITTEN;
	u64 block = le64_to_cpu(extent->ex_block);
	const struct domain *domain = domain_of_block(c, block);

	for (u32 i = 0; i < length; i++) {
		const struct lanefs_owner *owner = find_owner(c, domain, block + i);
		u64 n = (block + i - domain->layout.base) / LANEFS_OWNERS;

		if (owns(owner, ino, le32_to_cpu(extent->ex_logical) + i))
			continue;
		if (get_bit(domain->lost_owners, n)) {
			found->lost = true;
		} else if (!found->wrong++) {
			found->first = block + i;
			found->owner = *owner;
		}
	}
}

static void set_owners(struct check *c, u64 ino, const struct lanefs_extent *extent)
{
	u32 length = le32_to_cpu(extent->ex_length) & ~LANEFS_EXTENT_UNWRITTEN;
	u64 block = le64_to_cpu(extent->ex_block);
	const struct domain *domain = domain_of_block(c, block);

	for (u32 i = 0; i < length; i++) {
		struct lanefs_owner *owner = find_owner(c, domain, block + i);
		u32 logical = le32_to_cpu(extent->ex_logical) + i;

		if (owns(owner, ino, logical))
			continue;
		lanefs_owner_set(owner, ino, logical);
		c->owners_changed = true;
	}
}

void renew_owners(struct check *c, u64 ino, const struct lanefs_extent *extents, size_t count)
{
	if (!(le64_to_cpu(c->super.sb_incompat) & LANEFS_INCOMPAT_LOG))
		return;
	for (size_t i = 0; i < count; i++)
		set_owners(c, ino, &extents[i]);
	write_owners(c);
}

void check_owners(struct check *c, u64 ino, const struct lanefs_extent *extents, size_t count)
{
	struct differences found = { 0 };
	bool repair = false;

	if (!(le64_to_cpu(c->super.sb_incompat) & LANEFS_INCOMPAT_LOG))
		return;
	for (size_t i = 0; i < count; i++)
		compare(c, ino, &extents[i], &found);
	if (found.wrong)
		repair = can_repair(&c->report, "inode %llu: %llu of its blocks have another owner"
				" (the first is %llu: inode %llu at %u)", ino, found.wrong,
				found.first, lanefs_owner_ino(&found.owner),
				le32_to_cpu(found.owner.ow_logical));
	/* Lost entries were reported with their block. */
	if (repair || (found.lost && c->report.repair))
		renew_owners(c, ino, extents, count);
}
