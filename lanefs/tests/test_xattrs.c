// SPDX-License-Identifier: GPL-2.0-only
/* Random changes to a block of extended attributes against a plain list, and invalid blocks. */
#include "core/acl.h"
#include "core/xattrs.h"
#include "../../tests/check.h"
#include "random.h"

#define MANY 1024

struct attribute {
	u8 space;
	size_t name_len, value_len;
	u8 name[LANEFS_XATTR_NAME_MAX];
	u8 value[LANEFS_XATTR_VALUE_MAX];
};

static struct attribute list[MANY];
static int listed;
/* On the heap, so that the sanitizer sees an access beyond the block. */
static void *block;

static int order(const struct attribute *x, const struct attribute *y)
{
	size_t common = x->name_len < y->name_len ? x->name_len : y->name_len;
	int differs = memcmp(x->name, y->name, common);

	if (x->space != y->space)
		return x->space - y->space;
	return differs ? differs : (int)x->name_len - (int)y->name_len;
}

static int by_name(const void *a, const void *b)
{
	return order(a, b);
}

static int find(const struct attribute *wanted)
{
	for (int i = 0; i < listed; i++)
		if (!order(&list[i], wanted))
			return i;
	return -1;
}

static size_t bytes(void)
{
	size_t sum = LANEFS_HEADER_SIZE;

	for (int i = 0; i < listed; i++)
		sum += LANEFS_XATTR_SIZE(list[i].name_len, list[i].value_len);
	return sum;
}

static void same(void)
{
	struct lanefs_xattr *entry = NULL;

	CHECK(lanefs_xattrs_valid(block));
	for (int i = 0; i < listed; i++) {
		entry = lanefs_xattrs_next(block, entry);
		CHECK(entry);
		CHECK(entry == lanefs_xattrs_find(block, list[i].space, list[i].name,
						  list[i].name_len));
		CHECK_EQUAL(entry->xa_space, list[i].space);
		CHECK_EQUAL(entry->xa_name_len, list[i].name_len);
		CHECK_EQUAL(le16_to_cpu(entry->xa_value_len), list[i].value_len);
		CHECK(!memcmp(entry->xa_name, list[i].name, list[i].name_len));
		CHECK(!memcmp(lanefs_xattr_value(entry), list[i].value, list[i].value_len));
	}
	CHECK(!(listed ? lanefs_xattrs_next(block, entry) : lanefs_xattrs_next(block, NULL)));
	for (size_t i = bytes(); i < LANEFS_BLOCK_SIZE; i++)
		CHECK_EQUAL(((char *)block)[i], 0);
}

static void make_random(struct attribute *attribute)
{
	attribute->space = (u8)(1 + pick(3));
	attribute->name_len = 1 + pick(pick(8) ? 3 : LANEFS_XATTR_NAME_MAX);
	attribute->value_len = pick(pick(8) ? 60 : LANEFS_XATTR_VALUE_MAX + 1);
	for (size_t i = 0; i < attribute->name_len; i++)
		attribute->name[i] = (u8)(pick(10) ? 'a' + pick(2) : 128 + pick(128));
	for (size_t i = 0; i < attribute->value_len; i++)
		attribute->value[i] = (u8)next_random();
}

static void set_random(void)
{
	struct attribute a;
	size_t left;
	int old, got;

	make_random(&a);
	old = find(&a);
	left = LANEFS_BLOCK_SIZE - bytes();
	if (old >= 0)
		left += LANEFS_XATTR_SIZE(list[old].name_len, list[old].value_len);
	got = lanefs_xattrs_set(block, a.space, a.name, a.name_len, a.value, a.value_len);
	CHECK_EQUAL(got, LANEFS_XATTR_SIZE(a.name_len, a.value_len) > left ? -ENOSPC : 0);
	if (got)
		return;
	list[old < 0 ? listed++ : old] = a;
	qsort(list, (size_t)listed, sizeof(*list), by_name);
}

static void remove_random(void)
{
	int i = (int)pick((unsigned int)listed);
	struct lanefs_xattr *entry = lanefs_xattrs_find(block, list[i].space, list[i].name,
							list[i].name_len);

	CHECK(entry);
	lanefs_xattrs_remove(block, entry);
	memmove(&list[i], &list[i + 1], (size_t)(listed - i - 1) * sizeof(*list));
	listed--;
}

static void test_random(void)
{
	struct attribute a;

	for (int round = 0; round < 40; round++) {
		lanefs_xattrs_clear(block);
		listed = 0;
		for (int i = 0; i < 300; i++) {
			if (!listed || pick(4))
				set_random();
			else
				remove_random();
			same();
			make_random(&a);
			CHECK_EQUAL(!!lanefs_xattrs_find(block, a.space, a.name, a.name_len),
				    find(&a) >= 0);
		}
		while (listed) {
			remove_random();
			same();
		}
	}
}

static void test_limits(void)
{
	static u8 value[65537];
	const char *name = "n";

	lanefs_xattrs_clear(block);
	CHECK_EQUAL(lanefs_xattrs_set(block, 1, name, 1, value, LANEFS_XATTR_VALUE_MAX), 0);
	CHECK(lanefs_xattrs_valid(block));
	CHECK(lanefs_xattrs_next(block, NULL));
	CHECK_EQUAL(lanefs_xattrs_set(block, 1, "m", 1, value, 0), -ENOSPC);
	CHECK_EQUAL(lanefs_xattrs_set(block, 1, name, 1, value, LANEFS_XATTR_VALUE_MAX + 1), -ENOSPC);
	CHECK_EQUAL(lanefs_xattrs_set(block, 1, name, 1, value, 65536), -ENOSPC);
	CHECK_EQUAL(le16_to_cpu(lanefs_xattrs_find(block, 1, name, 1)->xa_value_len),
		    LANEFS_XATTR_VALUE_MAX);
	CHECK_EQUAL(lanefs_xattrs_set(block, 1, name, 1, value, 0), 0);
	CHECK_EQUAL(lanefs_xattrs_set(block, 1, "m", 1, value, 0), 0);
	CHECK(lanefs_xattrs_valid(block));
}

/* Any block at all is either refused or safe to walk. */
static void test_garbage(void)
{
	struct lanefs_header *header = block;
	int accepted = 0;

	for (int i = 0; i < 20000; i++) {
		struct lanefs_xattr *entry = NULL;
		unsigned int limit;

		lanefs_xattrs_clear(block);
		listed = 0;
		for (int n = 0; n < 8; n++)
			set_random();
		limit = le16_to_cpu(header->lh_used);
		for (unsigned int n = 1 + pick(3); n; n--) {
			if (pick(6))
				((u8 *)block)[LANEFS_HEADER_SIZE + pick(limit - LANEFS_HEADER_SIZE)] =
					(u8)next_random();
			else
				header->lh_used = cpu_to_le16((u16)pick(5000));
		}
		if (!lanefs_xattrs_valid(block))
			continue;
		accepted++;
		while ((entry = lanefs_xattrs_next(block, entry))) {
			CHECK(entry == lanefs_xattrs_find(block, entry->xa_space, entry->xa_name,
							  entry->xa_name_len));
			for (unsigned int n = 0; n < le16_to_cpu(entry->xa_value_len); n++)
				((volatile u8 *)lanefs_xattr_value(entry))[n];
		}
		lanefs_xattrs_set(block, 2, "name", 4, "value", 5);
		CHECK(lanefs_xattrs_valid(block));
	}
	CHECK(accepted > 100 && accepted < 19900);
}

static void refuses(size_t offset, u8 value)
{
	lanefs_xattrs_clear(block);
	CHECK_EQUAL(lanefs_xattrs_set(block, 1, "ab", 2, "value", 5), 0);
	CHECK_EQUAL(lanefs_xattrs_set(block, 1, "b", 1, "", 0), 0);
	CHECK(lanefs_xattrs_valid(block));
	((u8 *)block)[offset] = value;
	CHECK(!lanefs_xattrs_valid(block));
}

/* One thing wrong at a time; the first entry is at byte 64, the second at 76, the end at 84. */
static void test_invalid(void)
{
	refuses(50, 1);		/* lh_count */
	refuses(50, 3);
	refuses(52, 0);		/* lh_used */
	refuses(52, 63);
	refuses(52, 80);
	refuses(52, 88);
	refuses(53, 0x20);
	refuses(64, 20);	/* the first one's value_len */
	refuses(65, 0xff);
	refuses(66, 0);		/* its name_len */
	refuses(66, 251);
	refuses(67, 0);		/* its space */
	refuses(67, 2);
	refuses(67, 4);
	refuses(68, 'c');	/* its name: out of order */
	refuses(69, 0);
	refuses(80, 'a');	/* the second one's name */
}

#define ENTRY(tag, perm, id)	{ cpu_to_le16(tag), cpu_to_le16(perm), cpu_to_le32(id) }
#define NO_ID			LANEFS_ACL_NO_ID

struct acl {
	__le32 version;
	struct lanefs_acl_entry entry[6];
};

static struct acl good;

/* The owner, a named user, the group, a named group, the mask, others. */
static void make_good(void)
{
	good = (struct acl){
		.version = cpu_to_le32(LANEFS_ACL_VERSION),
		.entry = { ENTRY(1, 7, NO_ID), ENTRY(2, 6, 1000), ENTRY(4, 5, NO_ID),
			   ENTRY(8, 4, 0), ENTRY(16, 7, NO_ID), ENTRY(32, 0, NO_ID) },
	};
}

/* A block that has it alone is as good as it is. */
static bool acl_valid(const struct acl *acl, size_t entries)
{
	size_t size = sizeof(acl->version) + entries * sizeof(acl->entry[0]);
	bool valid = lanefs_acl_valid(acl, size);

	lanefs_xattrs_clear(block);
	CHECK_EQUAL(lanefs_xattrs_set(block, LANEFS_XATTR_ACL_DEFAULT, "", 0, acl, size), 0);
	CHECK_EQUAL(lanefs_xattrs_valid(block), valid);
	CHECK(!lanefs_acl_valid(acl, size - 1));
	return valid;
}

/* The ACL with one entry changed. */
static bool valid_with(int at, u16 tag, u16 perm, u32 id)
{
	struct acl acl = good;

	acl.entry[at] = (struct lanefs_acl_entry)ENTRY(tag, perm, id);
	return acl_valid(&acl, 6);
}

/* The ACL without one entry. */
static bool valid_without(int at)
{
	struct acl acl = good;

	memmove(&acl.entry[at], &acl.entry[at + 1], (size_t)(5 - at) * sizeof(acl.entry[0]));
	return acl_valid(&acl, 5);
}

static void test_acls(void)
{
	const struct acl plain = {
		.version = cpu_to_le32(LANEFS_ACL_VERSION),
		.entry = { ENTRY(1, 6, NO_ID), ENTRY(4, 4, NO_ID), ENTRY(32, 4, NO_ID) },
	};
	struct acl other;

	make_good();
	other = good;
	CHECK(acl_valid(&good, 6));
	CHECK(acl_valid(&plain, 3));
	CHECK(!acl_valid(&plain, 0));
	CHECK(!acl_valid(&plain, 2));
	CHECK(valid_without(1) && valid_without(3));
	CHECK(!valid_without(0) && !valid_without(2) && !valid_without(4) && !valid_without(5));
	CHECK(valid_with(3, 8, 7, 5));
	CHECK(!valid_with(3, 8, 8, 5));		/* permissions */
	CHECK(!valid_with(3, 8, 7, NO_ID));	/* ids */
	CHECK(!valid_with(2, 4, 7, 5));
	CHECK(!valid_with(3, 2, 7, 5));		/* tags */
	CHECK(!valid_with(3, 4, 7, NO_ID));
	CHECK(!valid_with(3, 0, 7, 5));
	CHECK(!valid_with(3, 10, 7, 5));
	CHECK(!valid_with(5, 64, 7, NO_ID));
	other.version = cpu_to_le32(1);
	CHECK(!acl_valid(&other, 6));

	/* Its name is that of the namespace, and there is one. */
	CHECK_EQUAL(lanefs_xattrs_set(block, LANEFS_XATTR_ACL_ACCESS, "", 0, &plain, 28), 0);
	CHECK_EQUAL(lanefs_xattrs_set(block, LANEFS_XATTR_ACL_DEFAULT, "", 0, &good, 52), 0);
	CHECK_EQUAL(lanefs_xattrs_set(block, LANEFS_XATTR_USER, "u", 1, "", 0), 0);
	CHECK(lanefs_xattrs_valid(block));
	CHECK_EQUAL(lanefs_xattrs_set(block, LANEFS_XATTR_ACL_ACCESS, "x", 1, &plain, 28), 0);
	CHECK(!lanefs_xattrs_valid(block));
}

int main(void)
{
	block = malloc(LANEFS_BLOCK_SIZE);
	test_random();
	test_limits();
	test_garbage();
	test_invalid();
	test_acls();
	free(block);
	return 0;
}
