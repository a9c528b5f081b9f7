// SPDX-License-Identifier: GPL-2.0-only
#include "../rules.h"

#include "rules_file.h"

static char why[256];

static bool begins(const char *text, uint32_t group)
{
	return rules_begin(rules_file(text), group, why, sizeof(why));
}

static void test_each_group_has_its_own(void)
{
	static const char text[] = "1:va:0xffffffff82000000-0xffffffff82000040\n2:pc:0x10-0x12\n";

	CHECK(begins(text, 1));
	CHECK(rules_free(0xffffffff82000000, 0));
	CHECK(rules_free(0xffffffff8200003f, 0));
	CHECK(!rules_free(0xffffffff82000040, 0));
	CHECK(!rules_free(0, 0x10));
	CHECK(begins(text, 2));
	CHECK(rules_free(0xffffffff82000000, 0x11));
	CHECK(!rules_free(0xffffffff82000000, 0x12));
	CHECK(!rules_free(0x10, 0));
	CHECK(begins(text, 3));
	CHECK(!rules_free(0xffffffff82000000, 0x11));
}

static void test_no_group_needs_no_file(void)
{
	CHECK(begins("1:pc:0x10-0x12\n", 1));
	CHECK(rules_begin("/nowhere", 0, why, sizeof(why)));
	CHECK(!rules_free(0, 0x10));
	CHECK(!rules_begin("/nowhere", 1, why, sizeof(why)));
	CHECK(!strcmp(why, "/nowhere: No such file or directory"));
	CHECK(!rules_begin("/", 1, why, sizeof(why)));
	CHECK(!strcmp(why, "/ cannot be read"));
}

static void test_wrong_ones(void)
{
	static const char *const wrong[] = {
		"1:pc:0x1\n",	  "0:pc:0x1-0x2\n", "1:xx:0x1-0x2\n", "1:pc:0x2-0x2\n",
		"1:pc:0x1-0x2x\n", "1:pc:0x1-0x2",  "\n",		 "1:pcs:0x1-0x2\n",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		CHECK(!begins(wrong[i], 1));
		CHECK(strstr(why, wrong[i]));
	}
}

static void test_as_many_as_there_is_room_for(void)
{
	static const char rule[] = "1:pc:0x1-0x2\n";
	static char text[(MAX_RULES + 2) * (sizeof(rule) - 1) + 1];

	for (unsigned int i = 0; i < MAX_RULES; i++)
		strcat(text, rule);
	CHECK(begins(text, 1));
	strcat(text, "2:pc:0x1-0x2\n");
	CHECK(begins(text, 1));
	strcat(text, rule);
	CHECK(!begins(text, 1));
	CHECK(strstr(why, "too many"));
}

int main(void)
{
	test_each_group_has_its_own();
	test_no_group_needs_no_file();
	test_wrong_ones();
	test_as_many_as_there_is_room_for();
	return 0;
}
