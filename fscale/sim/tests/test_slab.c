// SPDX-License-Identifier: GPL-2.0-only
/* A made-up guest: four pages, the last two of them a slab of one compound page. */
#include <string.h>

#include "../slab.h"
#include "../../../tests/check.h"

#define DIRECT_MAP 0xffff888000000000ull
#define PAGE_ARRAY 0xffffea0000000000ull
#define CACHE 0xffff888000000100ull
#define NAME 0xffff888000000200ull
#define OBJECT 96
#define SLAB_FLAG (1u << 9)

static const char layout_text[] =
	"0xffff888000000000:0xffffea0000000000:12:64:8:512:512:0:24:96:16";
static char name[] = "inode_cache";
static uint64_t tail;	/* what the slab's last page says of its first */
static struct slab_layout layout;

static bool read_made_up(uint64_t address, void *to, size_t size)
{
	uint64_t page = (address - PAGE_ARRAY) / 64, field = (address - PAGE_ARRAY) % 64, value = 0;

	if (address >= NAME && address + size <= NAME + sizeof(name)) {
		memcpy(to, name + (address - NAME), size);
		return true;
	}
	if (address == CACHE + 96)
		value = NAME;
	else if (address == CACHE + 16)
		value = OBJECT;
	else if (address >= PAGE_ARRAY && page < 4 && field == 0)
		value = page == 2 ? SLAB_FLAG : 0;
	else if (address >= PAGE_ARRAY && page < 4 && field == 8)
		value = page == 3 ? tail : 0;
	else if (address == PAGE_ARRAY + 128 + 24)
		value = CACHE;
	else
		return false;
	memcpy(to, &value, size);
	return true;
}

static void test_layouts(void)
{
	struct slab_layout found;

	CHECK(slab_parse(&found, layout_text));
	CHECK_EQUAL(found.direct_map, DIRECT_MAP);
	CHECK_EQUAL(found.cache_size, 16);
	CHECK(!slab_parse(&found, ""));
	CHECK(!slab_parse(&found, "1:2:3"));
	CHECK(!slab_parse(&found, "1:2:12:64:8:512:512:0:24:96:16:1"));
	CHECK(!slab_parse(&found, "1:2:12:64:8:512:512:0:24:96:x"));
	CHECK(!slab_parse(&found, "1:2:12:0:8:512:512:0:24:96:16"));
}

static void test_nothing_without_a_layout(void)
{
	struct slab_object object;

	slab_open(NULL, read_made_up);
	CHECK(!slab_find(DIRECT_MAP + 8192, &object));
}

static void find_objects(uint64_t said)
{
	struct slab_object object;

	tail = said;
	CHECK(slab_find(DIRECT_MAP + 8192 + 2 * OBJECT + 40, &object));
	CHECK(!strcmp(object.cache, "inode_cache"));
	CHECK_EQUAL(object.start, DIRECT_MAP + 8192 + 2 * OBJECT);
	CHECK_EQUAL(object.size, OBJECT);
	/* An object that begins in the first page of the slab and ends in the second. */
	CHECK(slab_find(DIRECT_MAP + 12288 + 10, &object));
	CHECK_EQUAL(object.start, DIRECT_MAP + 8192 + 4096 / OBJECT * OBJECT);
}

static void test_objects(void)
{
	slab_open(&layout, read_made_up);
	find_objects(PAGE_ARRAY + 128 + 1);
	/* As since 7.1: a mask. A slab begins at a multiple of its size. */
	find_objects(~127ull | 1);
}

static void test_what_is_none(void)
{
	struct slab_object object;

	slab_open(&layout, read_made_up);
	CHECK(!slab_find(DIRECT_MAP + 100, &object));	/* a page that is no slab */
	CHECK(!slab_find(DIRECT_MAP + 5 * 4096, &object));	/* no page at all */
	CHECK(!slab_find(DIRECT_MAP - 1, &object));
	CHECK(!slab_find(0xffffffff81000000ull, &object));
}

/* It ends up in JSON. */
static void test_names_are_plain(void)
{
	struct slab_object object;

	name[2] = '"';
	CHECK(slab_find(DIRECT_MAP + 8192, &object));
	CHECK(!strcmp(object.cache, "in?de_cache"));
	name[0] = '\0';
	CHECK(!slab_find(DIRECT_MAP + 8192, &object));
}

int main(void)
{
	CHECK(slab_parse(&layout, layout_text));
	test_layouts();
	test_nothing_without_a_layout();
	test_objects();
	test_what_is_none();
	test_names_are_plain();
	return 0;
}
