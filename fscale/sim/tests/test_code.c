// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "../code.h"
#include "../../../tests/check.h"

static struct code_counters counters[2];

static void prints(const char *expected)
{
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	CHECK(file);
	code_print(file);
	fclose(file);
	if (strcmp(text, expected))
		fprintf(stderr, "%s, not %s\n", text, expected);
	CHECK(!strcmp(text, expected));
	free(text);
}

static void test_each_block_is_counted(void)
{
	unsigned int a = code_block(0xffffffff81000000), b = code_block(0x401000);

	CHECK(a && b && a != b);
	CHECK_EQUAL(code_block(0xffffffff81000000), a);
	counters[0].block[a] = 100;
	code_forget(0);
	counters[0].block[a] += 7;
	counters[1].block[b] += 5;
	code_add(0);
	code_add(1);
	prints("\"code\":[[\"0xffffffff81000000\",7],[\"0x401000\",5]]");
	/* The next window. */
	code_forget(0);
	counters[0].block[a] += 1;
	code_add(0);
	prints("\"code\":[[\"0xffffffff81000000\",8],[\"0x401000\",5]]");
	code_reset();
	prints("\"code\":[]");
	/* A block that is translated while a window is open has what was counted there since. */
	code_forget(0);
	a = code_block(0xffffffff82000000);
	counters[0].block[a] += 2;
	code_add(0);
	prints("\"code\":[[\"0xffffffff82000000\",2]]");
}

static void test_what_has_no_block_is_counted_together(void)
{
	code_reset();
	for (uint64_t pc = 1; pc < CODE_BLOCKS; pc++)
		CHECK_EQUAL(code_block(pc << 4), pc);
	CHECK_EQUAL(code_block(1), 0);
	CHECK_EQUAL(code_block(5 << 4), 5);
	code_forget(0);
	counters[0].block[0] = 3;
	code_add(0);
	prints("\"code\":[[\"0x0\",3]]");
}

int main(void)
{
	/* A vCPU that does not count yet. */
	code_forget(2);
	code_add(2);
	code_count(0, &counters[0]);
	code_count(1, &counters[1]);
	test_each_block_is_counted();
	test_what_has_no_block_is_counted_together();
	return 0;
}
