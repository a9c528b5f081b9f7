// SPDX-License-Identifier: GPL-2.0-only
/* Random changes to an extent array against a model that has one entry for each block. */
#include "core/extents.h"
#include "../../tests/check.h"
#include "random.h"

#define SPACE 64	/* logical blocks of the model */
#define ROOM 12

struct model {
	u64 block[SPACE];	/* 0: a hole */
	bool unwritten[SPACE];
};

static struct lanefs_extent extents[ROOM];
static unsigned int count;
static struct model model;

static struct lanefs_extent make(u32 logical, u32 length, u64 block, bool unwritten)
{
	return (struct lanefs_extent){
		.ex_logical = cpu_to_le32(logical),
		.ex_length = cpu_to_le32(length | (unwritten ? LANEFS_EXTENT_UNWRITTEN : 0)),
		.ex_block = cpu_to_le64(block),
	};
}

static bool model_joined(unsigned int i)
{
	return model.block[i] && model.block[i - 1] && model.block[i] == model.block[i - 1] + 1 &&
	       model.unwritten[i] == model.unwritten[i - 1];
}

static void compare(bool minimal)
{
	unsigned int pieces = 0;

	CHECK(lanefs_extents_valid(extents, count));
	for (u32 i = 0; i < SPACE; i++) {
		int found = lanefs_extents_find(extents, count, i);

		if (found >= 0 && lanefs_extent_end(&extents[found]) <= i)
			found = -1;
		CHECK_EQUAL(found >= 0, model.block[i] != 0);
		if (found < 0)
			continue;
		CHECK_EQUAL(le64_to_cpu(extents[found].ex_block) + i -
			    le32_to_cpu(extents[found].ex_logical), model.block[i]);
		CHECK_EQUAL(lanefs_extent_unwritten(&extents[found]), model.unwritten[i]);
		pieces += !i || !model_joined(i);
	}
	if (minimal)
		CHECK_EQUAL(count, pieces);
}

static unsigned int model_pieces(const struct model *m)
{
	struct model saved = model;
	unsigned int pieces = 0;

	model = *m;
	for (unsigned int i = 0; i < SPACE; i++)
		pieces += model.block[i] && (!i || !model_joined(i));
	model = saved;
	return pieces;
}

static void random_change(void)
{
	u32 first = pick(SPACE), length = 1 + pick(SPACE - first < 9 ? SPACE - first : 9);
	/* Half of the blocks have the number that makes neighbours contiguous. */
	u64 block = pick(2) ? 1000 + first : 5000 + 100 * pick(9);
	bool unwritten = pick(2);
	struct lanefs_extent extent = make(first, length, block, unwritten);
	struct lanefs_extent before[ROOM];
	struct model wanted = model;
	bool overlap = false;
	int got;

	memcpy(before, extents, sizeof(before));
	switch (pick(4)) {
	case 0:
		for (u32 i = first; i < first + length; i++) {
			overlap |= model.block[i] != 0;
			wanted.block[i] = block + i - first;
			wanted.unwritten[i] = unwritten;
		}
		got = lanefs_extents_insert(extents, count, ROOM, &extent);
		CHECK_EQUAL(got == -EEXIST, overlap);
		break;
	case 1:
		for (u32 i = first; i < first + length; i++)
			wanted.block[i] = 0;
		got = lanefs_extents_remove(extents, count, ROOM, first, first + length);
		break;
	case 2:
		for (u32 i = first; i < first + length; i++) {
			wanted.block[i] = block + i - first;
			wanted.unwritten[i] = unwritten;
		}
		got = lanefs_extents_replace(extents, count, ROOM, &extent);
		break;
	default:
		for (u32 i = first; i < first + length; i++)
			wanted.unwritten[i] = false;
		got = lanefs_extents_convert(extents, count, ROOM, first, first + length);
		break;
	}
	if (got < 0) {
		CHECK(overlap || (got == -ENOSPC && (count == ROOM || model_pieces(&wanted) > ROOM ||
						     count + 2 > ROOM)));
		CHECK(!memcmp(before, extents, sizeof(before)));
		return;
	}
	count = (unsigned int)got;
	model = wanted;
	compare(true);
}

static void test_random(void)
{
	for (int round = 0; round < 200; round++) {
		memset(&model, 0, sizeof(model));
		count = 0;
		for (int i = 0; i < 500; i++)
			random_change();
	}
}

/* Moves what the model has from @first on by @by blocks, which are free there. */
static void model_shift(u32 first, int by)
{
	struct model old = model;

	for (u32 i = 0; i < SPACE; i++) {
		bool moved = (int)i - by >= (int)first && (int)i - by < SPACE;

		model.block[i] = moved ? old.block[(int)i - by] : i < first ? old.block[i] : 0;
		model.unwritten[i] = moved ? old.unwritten[(int)i - by] : i < first && old.unwritten[i];
	}
}

/* A hole is put in at a random place, and taken out again. */
static void test_shift(void)
{
	for (int round = 0; round < 20000; round++) {
		u32 first = pick(50), by = 1 + pick(16);
		struct lanefs_extent before[ROOM];
		unsigned int had;
		int got;

		memset(&model, 0, sizeof(model));
		count = 0;
		for (int i = 0; i < 12; i++)
			random_change();
		count = (unsigned int)lanefs_extents_remove(extents, count, ROOM, 48, SPACE);
		for (u32 i = 48; i < SPACE; i++)
			model.block[i] = 0;
		memcpy(before, extents, sizeof(before));
		had = count;
		got = lanefs_extents_split(extents, count, ROOM, first);
		if (got < 0) {
			CHECK(got == -ENOSPC && count == ROOM);
			CHECK(!memcmp(before, extents, sizeof(before)));
			continue;
		}
		CHECK(got == (int)count ||
		      (got == (int)count + 1 && first && model_joined(first)));
		count = (unsigned int)got;
		compare(false);
		count = lanefs_extents_shift(extents, count, first, by);
		model_shift(first, (int)by);
		compare(true);
		count = lanefs_extents_shift(extents, count, first + by, -(s64)by);
		model_shift(first + by, -(int)by);
		compare(true);
		CHECK_EQUAL(count, had);
		CHECK(!memcmp(before, extents, had * sizeof(*before)));
	}
}

static void test_limits(void)
{
	struct lanefs_extent big = make(0, LANEFS_EXTENT_MAX, 100, false);
	struct lanefs_extent next = make(LANEFS_EXTENT_MAX, 1, 100ull + LANEFS_EXTENT_MAX, false);
	struct lanefs_extent last = make(0xfffffffe, 1, 7, true);
	struct lanefs_extent beyond = make(0xfffffffe, 2, 7, true);
	struct lanefs_extent empty = make(5, 0, 7, true);

	count = 0;
	count = (unsigned int)lanefs_extents_insert(extents, count, ROOM, &big);
	count = (unsigned int)lanefs_extents_insert(extents, count, ROOM, &next);
	CHECK_EQUAL(count, 2);	/* a longer extent cannot be said */
	count = (unsigned int)lanefs_extents_insert(extents, count, ROOM, &last);
	CHECK_EQUAL(count, 3);
	CHECK(lanefs_extents_valid(extents, count));
	CHECK_EQUAL(lanefs_extents_find(extents, count, 0xffffffff), 2);
	count = (unsigned int)lanefs_extents_remove(extents, count, ROOM, 10,
						    LANEFS_MAX_FILE_BLOCKS);
	CHECK_EQUAL(count, 1);
	CHECK_EQUAL(lanefs_extent_length(&extents[0]), 10);
	CHECK(!lanefs_extents_valid(&beyond, 1));
	CHECK(!lanefs_extents_valid(&empty, 1));
}

static void test_index(void)
{
	struct lanefs_index index[LANEFS_NODE_RECORDS];

	for (unsigned int n = 1; n <= LANEFS_NODE_RECORDS; n++) {
		for (unsigned int i = 0; i < n; i++)
			index[i].ix_key = cpu_to_le64(10 * (u64)i + 100);
		CHECK_EQUAL(lanefs_index_find(index, n, 0), 0);
		for (unsigned int i = 0; i < n; i++) {
			CHECK_EQUAL(lanefs_index_find(index, n, 10 * (u64)i + 100), i);
			CHECK_EQUAL(lanefs_index_find(index, n, 10 * (u64)i + 109), i);
		}
		CHECK_EQUAL(lanefs_index_find(index, n, ~0ull), n - 1);
	}
}

int main(void)
{
	test_random();
	test_shift();
	test_limits();
	test_index();
	return 0;
}
