// SPDX-License-Identifier: GPL-2.0-only
/* Random changes to a directory leaf against a plain list, splits, and what is no valid leaf. */
#include "core/leaf.h"
#include "../../tests/check.h"
#include "random.h"

#define MANY 256

struct entry {
	u64 key, ino;
	size_t size;
	char name[LANEFS_NAME_MAX + 8];
};

static struct entry list[MANY];
static int listed;
/* On the heap, so that the sanitizer sees an access beyond the block. */
static void *leaf;

static void clear(void *block)
{
	struct lanefs_header *header = block;

	memset(block, 0, LANEFS_BLOCK_SIZE);
	header->lh_used = cpu_to_le16(LANEFS_HEADER_SIZE);
}

static int find(u64 key)
{
	for (int i = 0; i < listed; i++)
		if (list[i].key == key)
			return i;
	return -1;
}

static size_t bytes(void)
{
	size_t sum = LANEFS_HEADER_SIZE;

	for (int i = 0; i < listed; i++)
		sum += LANEFS_DIRENT_SIZE(list[i].size);
	return sum;
}

static int by_key(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

/* The entries of @block are list[first] and on, @number of them. */
static void same(void *block, int first, int number)
{
	struct lanefs_dirent *entry = lanefs_leaf_seek(block, 0), *found;

	CHECK(lanefs_leaf_valid(block, false));
	for (int i = first; i < first + number; i++) {
		CHECK(entry);
		CHECK_EQUAL(le64_to_cpu(entry->de_key), list[i].key);
		CHECK_EQUAL(le64_to_cpu(entry->de_ino), list[i].ino);
		CHECK_EQUAL(le16_to_cpu(entry->de_name_len), list[i].size);
		CHECK(!memcmp(entry->de_name, list[i].name, list[i].size));
		found = lanefs_leaf_lookup(block, list[i].key & ~LANEFS_KEY_SEQ_MASK, list[i].name,
					   list[i].size);
		/* A random name may be there twice. */
		CHECK(found && found <= entry && found->de_name_len == entry->de_name_len);
		CHECK(!memcmp(found->de_name, entry->de_name, list[i].size));
		entry = lanefs_leaf_next(block, entry);
	}
	CHECK(!entry);
}

static void add_random(void)
{
	/* Few hashes, so that names share one. */
	struct entry e = { .key = (u64)pick(40) << LANEFS_KEY_SEQ_BITS | pick(5),
			   .ino = next_random(), .size = 1 + pick(pick(4) ? 20 : LANEFS_NAME_MAX) };
	bool full = bytes() + LANEFS_DIRENT_SIZE(e.size) > LANEFS_BLOCK_SIZE;
	bool there = find(e.key) >= 0;
	int got;

	for (size_t i = 0; i < e.size; i++)
		e.name[i] = (char)('a' + pick(26));
	got = lanefs_leaf_insert(leaf, e.key, e.ino, 1, e.name, e.size);
	CHECK_EQUAL(got, there ? -EEXIST : full ? -ENOSPC : 0);
	if (got)
		return;
	list[listed++] = e;
	qsort(list, (size_t)listed, sizeof(*list), by_key);
}

static void remove_random(void)
{
	int i = pick((unsigned int)listed);

	lanefs_leaf_remove(leaf, lanefs_leaf_seek(leaf, list[i].key));
	memmove(&list[i], &list[i + 1], (size_t)(listed - i - 1) * sizeof(*list));
	listed--;
}

static void test_free_key(void)
{
	u64 hash = pick(40), key = hash << LANEFS_KEY_SEQ_BITS, wanted = key;
	bool open;

	while (find(wanted) >= 0)
		wanted++;
	open = lanefs_leaf_free_key(leaf, &key);
	CHECK_EQUAL(key, wanted);
	CHECK_EQUAL(open, !listed || list[listed - 1].key < wanted);
}

static void test_split(void)
{
	void *left = malloc(LANEFS_BLOCK_SIZE), *right = calloc(1, LANEFS_BLOCK_SIZE);
	const struct lanefs_header *header = left;
	int kept;
	u64 key;

	memcpy(left, leaf, LANEFS_BLOCK_SIZE);
	key = lanefs_leaf_split(left, right);
	kept = le16_to_cpu(header->lh_count);
	CHECK(kept > 0 && kept < listed);
	CHECK_EQUAL(key, list[kept].key);
	same(left, 0, kept);
	same(right, kept, listed - kept);
	/* Neither side has over half of the body and the longest entry. */
	CHECK(le16_to_cpu(header->lh_used) <= LANEFS_HEADER_SIZE + LANEFS_BODY_SIZE / 2 + 280);
	free(left);
	free(right);
}

static void test_random(void)
{
	for (int round = 0; round < 30; round++) {
		clear(leaf);
		listed = 0;
		for (int i = 0; i < 600; i++) {
			if (!listed || pick(3))
				add_random();
			else
				remove_random();
			same(leaf, 0, listed);
			test_free_key();
			if (listed > 1)
				test_split();
		}
		while (listed)
			remove_random();
		for (int i = LANEFS_HEADER_SIZE; i < LANEFS_BLOCK_SIZE; i++)
			CHECK_EQUAL(((char *)leaf)[i], 0);
	}
}

/* Any block at all is either refused or safe to walk. */
static void test_garbage(void)
{
	struct lanefs_header *header = leaf;
	int accepted = 0;

	for (int i = 0; i < 20000; i++) {
		struct lanefs_dirent *entry;
		unsigned int limit;

		clear(leaf);
		listed = 0;
		for (int n = 0; n < 12; n++)
			add_random();
		limit = le16_to_cpu(header->lh_used);
		for (unsigned int n = 1 + pick(2); n; n--) {
			((u8 *)leaf)[pick(8) ? LANEFS_HEADER_SIZE + pick(limit - 64) : 50 + pick(6)] =
				(u8)(pick(2) ? next_random() : 0);
		}
		if (!lanefs_leaf_valid(leaf, pick(2)))
			continue;
		accepted++;
		for (entry = lanefs_leaf_seek(leaf, 0); entry; entry = lanefs_leaf_next(leaf, entry))
			lanefs_leaf_lookup(leaf, le64_to_cpu(entry->de_key), "name", 4);
	}
	CHECK(accepted > 100);
}

static void test_invalid(void)
{
	struct lanefs_header *header = leaf;
	struct lanefs_dirent *entry;

	clear(leaf);
	CHECK_EQUAL(lanefs_leaf_insert(leaf, 128, 5, 1, "four", 4), 0);
	CHECK_EQUAL(lanefs_leaf_insert(leaf, 256, 5, 1, "ninebytes", 9), 0);
	CHECK(lanefs_leaf_valid(leaf, false));
	CHECK(!lanefs_leaf_valid(leaf, true));	/* "four" has no room for a parent's number */
	entry = lanefs_leaf_seek(leaf, 256);
	entry->de_key = cpu_to_le64(128);
	CHECK(!lanefs_leaf_valid(leaf, false));
	/* A listing goes on behind it, and no offset is that large. */
	entry->de_key = cpu_to_le64(~1ULL);
	CHECK(!lanefs_leaf_valid(leaf, false));
	entry->de_key = cpu_to_le64(LANEFS_HASH_MASK << LANEFS_KEY_SEQ_BITS);
	CHECK(!lanefs_leaf_valid(leaf, false));
	entry->de_key = cpu_to_le64((LANEFS_HASH_MASK << LANEFS_KEY_SEQ_BITS) - 1);
	CHECK(lanefs_leaf_valid(leaf, false));
	entry->de_key = cpu_to_le64(256);
	header->lh_count = cpu_to_le16(3);
	CHECK(!lanefs_leaf_valid(leaf, false));
	header->lh_count = cpu_to_le16(2);
	header->lh_used = cpu_to_le16(LANEFS_BLOCK_SIZE + 8);
	CHECK(!lanefs_leaf_valid(leaf, false));
	header->lh_used = cpu_to_le16(0);
	CHECK(!lanefs_leaf_valid(leaf, false));
}

int main(void)
{
	leaf = malloc(LANEFS_BLOCK_SIZE);
	test_random();
	test_garbage();
	test_invalid();
	free(leaf);
	return 0;
}
