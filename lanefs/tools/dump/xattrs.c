// SPDX-License-Identifier: GPL-2.0-only
/* An inode's extended attributes. */
#include <stdio.h>
#include <stdlib.h>

#include "core/block.h"
#include "core/xattrs.h"
#include "dump.h"
#include "tools/common/die.h"

static const char *const prefixes[] = {
	[LANEFS_XATTR_USER] = "user.",
	[LANEFS_XATTR_TRUSTED] = "trusted.",
	[LANEFS_XATTR_SECURITY] = "security.",
	[LANEFS_XATTR_ACL_ACCESS] = "system.posix_acl_access",
	[LANEFS_XATTR_ACL_DEFAULT] = "system.posix_acl_default",
};

static json_t *name_json(const struct lanefs_xattr *entry)
{
	char name[32 + LANEFS_XATTR_NAME_MAX];
	int length = snprintf(name, sizeof(name), "%s", prefixes[entry->xa_space]);

	memcpy(name + length, entry->xa_name, entry->xa_name_len);
	return text_json(name, (size_t)length + entry->xa_name_len);
}

/* Printable ASCII as it is, anything else in hexadecimal, as getfattr shows it. */
static json_t *value_json(const u8 *value, size_t size)
{
	char *hex = allocate(size + 1, 2 + 1);
	bool printable = true;
	json_t *json;

	for (size_t i = 0; i < size; i++) {
		printable = printable && value[i] >= ' ' && value[i] < 0x7f;
		sprintf(hex + 2 + 2 * i, "%02x", value[i]);
	}
	memcpy(hex, "0x", 2);
	json = printable ? text_json(value, size) : json_string(hex);
	free(hex);
	return json;
}

json_t *xattrs_json(struct dump *dump, const struct lanefs_dinode *inode)
{
	u64 number = le64_to_cpu(inode->di_xattr);
	struct lanefs_xattr *entry = NULL;
	u8 block[LANEFS_BLOCK_SIZE];
	const struct lanefs_header *header = (const void *)block;
	json_t *list = json_array();

	if (number >= dump->image.blocks)
		return list;
	read_block(dump, number, block);
	if (!lanefs_block_good(block, LANEFS_MAGIC_XATTR, number, dump->super.sb_header.lh_uuid) ||
	    header->lh_owner != inode->di_ino || !lanefs_xattrs_valid(block))
		return list;
	while ((entry = lanefs_xattrs_next(block, entry)))
		json_array_append_new(list, json_pack("{s:o, s:i, s:o}",
			"name", name_json(entry), "size", (int)le16_to_cpu(entry->xa_value_len),
			"value", value_json(lanefs_xattr_value(entry),
					    le16_to_cpu(entry->xa_value_len))));
	return list;
}
