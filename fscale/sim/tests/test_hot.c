// SPDX-License-Identifier: GPL-2.0-only
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../hot.h"
#include "../../../tests/check.h"

/* Far more lines than there are places. */
#define DATA 200000u
#define LOCK 77u

static const struct transfer moved = { .kind = KIND_DIRTY, .stall = 100 };

static void move(uint64_t line, uint64_t pc)
{
	const struct place place = { .virtual = line << LINE_SHIFT, .physical = line << LINE_SHIFT, .pc = pc };

	hot_transfer(&place, &moved, false);
}

static char *printed(unsigned int most)
{
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	CHECK(file);
	hot_print(most, file);
	fclose(file);
	return text;
}

static bool begins(const char *text, const char *expected)
{
	if (strstr(text, expected) == text)
		return true;
	fprintf(stderr, "%s does not begin with %s\n", text, expected);
	return false;
}

/* Data that is moved but once does not keep a lock from its place, nor take it away. */
static void test_a_lock_among_much_data(void)
{
	char *text, spins[64];
	uint64_t spun = 0;

	for (uint64_t line = 1000; line < 1000 + DATA; line++) {
		move(line, 0x10);
		/* The table is full before. */
		if (line > 1000 + DATA / 2 && line % 100 == 0) {
			hot_spin(LOCK, LOCK << LINE_SHIFT, 5000);
			spun += 5000;
		}
	}
	text = printed(1);
	CHECK(begins(text, "\"lines\":[{\"pa\":\"0x1340\""));
	snprintf(spins, sizeof(spins), "\"spin\":%" PRIu64 ",", spun);
	CHECK(strstr(text, spins));
	free(text);
}

/* What an instruction waits for does not depend on there being a place for the line. */
static void test_instructions_are_counted_for_all_lines(void)
{
	char *text, pcs[96];

	for (uint64_t line = 0; line < DATA; line++)
		move(line, 0x20);
	snprintf(pcs, sizeof(pcs), "\"pcs\":[{\"pc\":\"0x20\",\"transfers\":%u,\"stall\":%u,", DATA,
		 DATA * 100);
	text = printed(1);
	CHECK(strstr(text, pcs));
	CHECK(strstr(text, "\"lost\":") && !strstr(text, "\"lost\":0"));
	free(text);
	/* The next window begins with nothing. */
	text = printed(1);
	CHECK(!strcmp(text, "\"lines\":[],\"pcs\":[],\"lost\":0"));
	free(text);
}

int main(void)
{
	CHECK(hot_open());
	test_a_lock_among_much_data();
	test_instructions_are_counted_for_all_lines();
	return 0;
}
