// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include "../conflicts.h"
#include "../../../tests/check.h"

#define LINE 0xffff888000100000ull

static char *text;
static size_t size;
static FILE *out;

/* What is printed about the calls since the last time. */
static const char *conflicts(void)
{
	rewind(out);
	conflicts_pair(7);
	return text;
}

static bool prints(const char *expected)
{
	const char *printed = conflicts();

	if (strstr(printed, expected))
		return true;
	fprintf(stderr, "%s has no %s\n", printed, expected);
	return false;
}

#define NONE "\"lines\":[]}"

static void test_what_conflicts(void)
{
	conflicts_access(0, LINE, 8, false, 0x10);
	conflicts_access(1, LINE, 8, false, 0x20);
	CHECK(prints("\"pair\":7,\"lost\":0," NONE));

	conflicts_access(0, LINE, 8, true, 0x10);
	conflicts_access(0, LINE, 8, false, 0x10);
	conflicts_access(1, LINE + 64, 8, true, 0x20);
	CHECK(prints(NONE));

	conflicts_access(0, LINE + 8, 8, true, 0x10);
	conflicts_access(1, LINE + 12, 2, false, 0x20);
	CHECK(prints("{\"va\":\"0xffff888000100000\",\"bytes\":\"0x3000\",\"layout\":false,"
		     "\"a\":[{\"pc\":\"0x10\",\"write\":true}],"
		     "\"b\":[{\"pc\":\"0x20\",\"write\":false}]}"));
	CHECK(prints(NONE));

	/* Different bytes of a line. */
	conflicts_access(0, LINE, 8, false, 0x10);
	conflicts_access(1, LINE + 8, 8, true, 0x20);
	CHECK(prints("\"bytes\":\"0xff00\",\"layout\":true,"));
}

/* An access may reach into the next line. */
static void test_two_lines(void)
{
	conflicts_access(0, LINE + 60, 8, true, 0x10);
	conflicts_access(1, LINE + 64, 1, true, 0x20);
	CHECK(prints("\"va\":\"0xffff888000100040\",\"bytes\":\"0x1\",\"layout\":false,"));
}

static void test_too_many_lines(void)
{
	for (uint64_t i = 0; i < 1u << 20; i++)
		conflicts_access(0, LINE + i * 64, 1, true, 0x10);
	conflicts_access(1, LINE, 1, true, 0x20);
	CHECK(!strstr(conflicts(), "\"lost\":0"));
	CHECK(prints(NONE));
}

static void test_inside(void)
{
	CHECK(!conflicts_inside(1));
	conflicts_call(1, true);
	CHECK(conflicts_inside(1));
	CHECK(!conflicts_inside(0));
	conflicts_call(1, false);
	CHECK(!conflicts_inside(1));
	conflicts_call(2, true);
	CHECK(!conflicts_inside(2));
}

int main(void)
{
	out = open_memstream(&text, &size);
	CHECK(out);
	conflicts_open(out);
	test_what_conflicts();
	test_two_lines();
	test_too_many_lines();
	test_inside();
	fclose(out);
	free(text);
	return 0;
}
