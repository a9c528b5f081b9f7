// SPDX-License-Identifier: GPL-2.0-only
#include "acl.h"

#define ACL_ALWAYS	(LANEFS_ACL_USER_OBJ | LANEFS_ACL_GROUP_OBJ | LANEFS_ACL_OTHER)
#define ACL_NAMED	(LANEFS_ACL_USER | LANEFS_ACL_GROUP)
#define ACL_TAGS	(ACL_ALWAYS | ACL_NAMED | LANEFS_ACL_MASK)

/* @last: the tag of the entry before it, or 0. */
static bool acl_entry_valid(const struct lanefs_acl_entry *entry, unsigned int last)
{
	unsigned int tag = le16_to_cpu(entry->ae_tag);
	bool named = tag & ACL_NAMED;

	if (!tag || (tag & (tag - 1)) || (tag & ~(unsigned int)ACL_TAGS))
		return false;
	if (tag < last || (tag == last && !named))
		return false;
	if (le16_to_cpu(entry->ae_perm) & ~7)
		return false;
	return named == (le32_to_cpu(entry->ae_id) != LANEFS_ACL_NO_ID);
}

bool lanefs_acl_valid(const void *value, size_t size)
{
	struct lanefs_acl_entry entry;
	unsigned int last = 0, seen = 0;
	__le32 version;
	size_t at;

	if (size < sizeof(version) || (size - sizeof(version)) % sizeof(entry))
		return false;
	memcpy(&version, value, sizeof(version));
	if (le32_to_cpu(version) != LANEFS_ACL_VERSION)
		return false;
	for (at = sizeof(version); at < size; at += sizeof(entry)) {
		memcpy(&entry, (const char *)value + at, sizeof(entry));
		if (!acl_entry_valid(&entry, last))
			return false;
		last = le16_to_cpu(entry.ae_tag);
		seen |= last;
	}
	return (seen & ACL_ALWAYS) == ACL_ALWAYS &&
	       (!(seen & ACL_NAMED) || (seen & LANEFS_ACL_MASK));
}
