// SPDX-License-Identifier: GPL-2.0-only
#include "acl.h"
#include "xattrs.h"

static unsigned int xattrs_used(const void *block)
{
	return le16_to_cpu(((const struct lanefs_header *)block)->lh_used);
}

static void xattrs_grow(void *block, int bytes, int entries)
{
	struct lanefs_header *header = block;

	header->lh_used = cpu_to_le16((u16)(le16_to_cpu(header->lh_used) + bytes));
	header->lh_count = cpu_to_le16((u16)(le16_to_cpu(header->lh_count) + entries));
}

static unsigned int offset_of(const void *block, const struct lanefs_xattr *entry)
{
	return (unsigned int)((const char *)entry - (const char *)block);
}

static unsigned int xattr_size(const struct lanefs_xattr *entry)
{
	return LANEFS_XATTR_SIZE(entry->xa_name_len, (unsigned int)le16_to_cpu(entry->xa_value_len));
}

/* Less than, equal to or greater than 0, as the entry comes before, is, or comes after the name. */
static int xattr_order(const struct lanefs_xattr *entry, u8 space, const void *name,
		       size_t name_len)
{
	size_t common = entry->xa_name_len < name_len ? entry->xa_name_len : name_len;
	int order;

	if (entry->xa_space != space)
		return entry->xa_space < space ? -1 : 1;
	order = memcmp(entry->xa_name, name, common);
	if (order)
		return order;
	return entry->xa_name_len < name_len ? -1 : entry->xa_name_len > name_len;
}

static bool xattr_valid(const struct lanefs_xattr *entry)
{
	if (lanefs_xattr_is_acl(entry->xa_space))
		return !entry->xa_name_len &&
		       lanefs_acl_valid(entry->xa_name, le16_to_cpu(entry->xa_value_len));
	return entry->xa_space >= LANEFS_XATTR_USER && entry->xa_space <= LANEFS_XATTR_SECURITY &&
	       entry->xa_name_len && entry->xa_name_len <= LANEFS_XATTR_NAME_MAX &&
	       !memchr(entry->xa_name, 0, entry->xa_name_len);
}

bool lanefs_xattrs_valid(const void *block)
{
	unsigned int used = xattrs_used(block), offset = LANEFS_HEADER_SIZE;
	const struct lanefs_xattr *entry, *last = NULL;
	int count = 0;

	if (used > LANEFS_BLOCK_SIZE)
		return false;
	for (; offset < used; count++, last = entry) {
		entry = (const void *)((const char *)block + offset);
		if (used - offset < sizeof(*entry) || used - offset < xattr_size(entry))
			return false;
		if (!xattr_valid(entry))
			return false;
		if (last && xattr_order(last, entry->xa_space, entry->xa_name,
					entry->xa_name_len) >= 0)
			return false;
		offset += xattr_size(entry);
	}
	return offset == used &&
	       count == le16_to_cpu(((const struct lanefs_header *)block)->lh_count);
}

void lanefs_xattrs_clear(void *block)
{
	struct lanefs_header *header = block;

	header->lh_count = 0;
	header->lh_used = cpu_to_le16(LANEFS_HEADER_SIZE);
	memset(header + 1, 0, LANEFS_BODY_SIZE);
}

struct lanefs_xattr *lanefs_xattrs_next(void *block, struct lanefs_xattr *entry)
{
	unsigned int offset = LANEFS_HEADER_SIZE;

	if (entry)
		offset = offset_of(block, entry) + xattr_size(entry);
	return offset < xattrs_used(block) ? (void *)((char *)block + offset) : NULL;
}

/* The first entry that is the name or comes after it, or NULL. */
static struct lanefs_xattr *xattrs_seek(void *block, u8 space, const void *name, size_t name_len)
{
	struct lanefs_xattr *entry = lanefs_xattrs_next(block, NULL);

	while (entry && xattr_order(entry, space, name, name_len) < 0)
		entry = lanefs_xattrs_next(block, entry);
	return entry;
}

struct lanefs_xattr *lanefs_xattrs_find(void *block, u8 space, const void *name, size_t name_len)
{
	struct lanefs_xattr *entry = xattrs_seek(block, space, name, name_len);

	return entry && !xattr_order(entry, space, name, name_len) ? entry : NULL;
}

int lanefs_xattrs_set(void *block, u8 space, const void *name, size_t name_len, const void *value,
		      size_t value_len)
{
	struct lanefs_xattr *entry = lanefs_xattrs_find(block, space, name, name_len);
	unsigned int room = LANEFS_BLOCK_SIZE - xattrs_used(block), size, offset;

	if (value_len > LANEFS_XATTR_VALUE_MAX)
		return -ENOSPC;
	size = LANEFS_XATTR_SIZE((unsigned int)name_len, (unsigned int)value_len);
	if (entry)
		room += xattr_size(entry);
	if (size > room)
		return -ENOSPC;
	if (entry)
		lanefs_xattrs_remove(block, entry);
	entry = xattrs_seek(block, space, name, name_len);
	offset = entry ? offset_of(block, entry) : xattrs_used(block);
	entry = (void *)((char *)block + offset);
	memmove((char *)entry + size, entry, xattrs_used(block) - offset);
	memset(entry, 0, size);
	entry->xa_value_len = cpu_to_le16((u16)value_len);
	entry->xa_name_len = (u8)name_len;
	entry->xa_space = space;
	memcpy(entry->xa_name, name, name_len);
	if (value_len)
		memcpy(lanefs_xattr_value(entry), value, value_len);
	xattrs_grow(block, (int)size, 1);
	return 0;
}

void lanefs_xattrs_remove(void *block, struct lanefs_xattr *entry)
{
	unsigned int size = xattr_size(entry), used = xattrs_used(block);
	unsigned int offset = offset_of(block, entry);

	memmove(entry, (char *)entry + size, used - offset - size);
	/* Unused bytes stay zero, so that no removed value is left in the image. */
	memset((char *)block + used - size, 0, size);
	xattrs_grow(block, -(int)size, -1);
}
