// SPDX-License-Identifier: GPL-2.0-only
/* Stage 1 of extended attributes: the block that an inode has of them. */
#include <stdio.h>
#include <sys/stat.h>

#include "core/acl.h"
#include "inodes.h"

/* The entry at @at if it is sound, or why it is not. */
static const char *bad_entry(const u8 *block, size_t at, size_t used, struct lanefs_xattr *entry)
{
	if (used - at < sizeof(*entry))
		return "has an entry beyond its end";
	memcpy(entry, block + at, sizeof(*entry));
	if (entry->xa_space < LANEFS_XATTR_USER || entry->xa_space > LANEFS_XATTR_ACL_DEFAULT)
		return "has an attribute of an unknown namespace";
	if (entry->xa_name_len > LANEFS_XATTR_NAME_MAX ||
	    (entry->xa_name_len == 0) != lanefs_xattr_is_acl(entry->xa_space))
		return "has a name of a wrong length";
	if (LANEFS_XATTR_SIZE(entry->xa_name_len, (size_t)le16_to_cpu(entry->xa_value_len)) >
	    used - at)
		return "has an entry beyond its end";
	if (memchr(block + at + sizeof(*entry), 0, entry->xa_name_len))
		return "has a name with a zero byte";
	return NULL;
}

/* Whether the name of the entry at @last comes before the one of that at @at. */
static bool in_order(const u8 *block, size_t last, size_t at)
{
	struct lanefs_xattr a, b;
	size_t common;
	int order;

	memcpy(&a, block + last, sizeof(a));
	memcpy(&b, block + at, sizeof(b));
	if (a.xa_space != b.xa_space)
		return a.xa_space < b.xa_space;
	common = a.xa_name_len < b.xa_name_len ? a.xa_name_len : b.xa_name_len;
	order = memcmp(block + last + sizeof(a), block + at + sizeof(b), common);
	return order < 0 || (!order && a.xa_name_len < b.xa_name_len);
}

static bool is_zero(const u8 *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i])
			return false;
	return true;
}

/* Why the sound entry at @at cannot be an attribute of an inode of that mode; NULL: it can. */
static const char *bad_acl(const u8 *block, size_t at, const struct lanefs_xattr *entry, mode_t mode)
{
	if (!lanefs_xattr_is_acl(entry->xa_space))
		return NULL;
	if (!lanefs_acl_valid(block + at + sizeof(*entry), le16_to_cpu(entry->xa_value_len)))
		return "has an invalid ACL";
	if (entry->xa_space == LANEFS_XATTR_ACL_DEFAULT ? !S_ISDIR(mode) : S_ISLNK(mode))
		return "has an ACL that inodes of its type cannot have";
	return NULL;
}

/* Why the entries make no sense; NULL: they do. */
static const char *bad_entries(const u8 *block, mode_t mode)
{
	const struct lanefs_header *header = (const void *)block;
	size_t used = le16_to_cpu(header->lh_used), at = LANEFS_HEADER_SIZE, last = 0, end;
	struct lanefs_xattr entry;
	unsigned int count = 0;
	const char *problem;

	if (used <= at || used > LANEFS_BLOCK_SIZE)
		return "has a wrong size";
	for (; at < used; count++) {
		problem = bad_entry(block, at, used, &entry);
		if (!problem)
			problem = bad_acl(block, at, &entry, mode);
		if (problem)
			return problem;
		if (last && !in_order(block, last, at))
			return "has names out of order, or one twice";
		end = at + sizeof(entry) + entry.xa_name_len + le16_to_cpu(entry.xa_value_len);
		last = at;
		at += LANEFS_XATTR_SIZE(entry.xa_name_len, (size_t)le16_to_cpu(entry.xa_value_len));
		if (!is_zero(block + end, at - end))
			return "has data between its entries";
	}
	if (le16_to_cpu(header->lh_count) != count)
		return "has a wrong count of entries";
	if (header->lh_level || header->lh_reserved)
		return "has a reserved field set";
	if (!is_zero(block + used, LANEFS_BLOCK_SIZE - used))
		return "has data behind its entries";
	return NULL;
}

/* Why the block cannot be kept; NULL: it can, and is claimed. */
static const char *bad_block(struct check *c, u64 ino, u64 number, mode_t mode)
{
	u8 block[LANEFS_BLOCK_SIZE];
	const char *problem;

	if (domain_of_block(c, number) != &c->domain[lanefs_ino_domain(ino)])
		return "is not for metadata of its domain";
	read_block(c, number, block);
	if (!block_good(c, block, LANEFS_MAGIC_XATTR, number, ino))
		return "is damaged";
	problem = bad_entries(block, mode);
	if (!problem && !claim(c, number))
		problem = "is in use twice";
	return problem;
}

void check_xattrs(struct check *c, u64 ino, struct lanefs_dinode *inode, bool *write)
{
	u64 number = le64_to_cpu(inode->di_xattr), blocks = le64_to_cpu(inode->di_blocks);
	const char *problem;

	if (!number)
		return;
	problem = is_span_directory(c, ino) ? "is not allowed for a span directory" :
		  bad_block(c, ino, number, le16_to_cpu(inode->di_mode));
	if (!problem ||
	    !can_repair(&c->report, "inode %llu: block %llu of its extended attributes %s; without it"
		      " they are lost", ino, number, problem))
		return;
	inode->di_xattr = 0;
	if (blocks)
		inode->di_blocks = cpu_to_le64(blocks - 1);
	*write = true;
}
