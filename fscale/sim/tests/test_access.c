// SPDX-License-Identifier: GPL-2.0-only
/* What the pieces do together: accesses, rules of what is free, spinners, and the line of a window. */
#include "../access.h"
#include "../hot.h"
#include "../rules.h"
#include "../schedule.h"
#include "../statistics.h"

#include <string.h>

#include "../../../tests/check.h"
#include "rules_file.h"

#define PC_A 0xffffffff81000010ull
#define PC_B 0xffffffff81000020ull
#define VIRTUAL 0xffff888000100000ull
#define PHYSICAL 0x100000ull

static struct parameters machine = {
	.vcpus = 4,
	.memory_mib = 1,
	.clock_mhz = 1000,
	.cores_per_socket = 2,
	/* One thread is all vCPUs: each may run whenever it asks. */
	.quantum = 1000000,
	.slice_max = 1000,
	.lat_clean = 40,
	.lat_clean_remote = 200,
	.lat_dirty = 100,
	.lat_dirty_remote = 300,
	.lat_upgrade = 60,
	.lat_upgrade_remote = 210,
	.lat_memory = 180,
	.occupy_shared = 15,
	.cost_pause = 40,
	.string_bytes = 32,
	.park = 3000,
	.grace = 60,
	.graces = 2,
	.boot_slowdown = 1,
	.coherence = 1,
	.queueing = 1,
	.hot_lines = 2,
	.words = 1,
};

static struct counters counters[4];
/* Of what costs nothing, by groups. */
static char *rules;

/* With no rules, which is group 0, or with those of a group of the file. */
static void start(uint32_t group)
{
	char why[256];

	CHECK(rules_begin(rules, group, why, sizeof(why)));
	access_begin();
	schedule_set_mode(MODE_DETAILED, 0);
}

static void access_at(unsigned int c, uint64_t offset, bool write, uint64_t pc)
{
	if (!access_hits(c, VIRTUAL + offset, write))
		access_line(c, VIRTUAL + offset, PHYSICAL + offset, write, pc);
	CHECK(access_hits(c, VIRTUAL + offset, write));
	access_words(c, VIRTUAL + offset, 4, write, pc);
}

/* What `c` has stalled so far. */
static uint64_t stalled(unsigned int c)
{
	return access_transfers(c)->stall;
}

static void test_cost(void)
{
	uint64_t clock;

	start(0);
	clock = schedule_clock(0);
	access_at(0, 0, true, PC_A);
	CHECK_EQUAL(schedule_clock(0), clock + 180);
	access_at(0, 63, false, PC_A);
	CHECK_EQUAL(schedule_clock(0), clock + 180);
	access_at(1, 8, false, PC_B);
	CHECK_EQUAL(stalled(1), 100);
	access_at(2, 8, true, PC_B);
	CHECK_EQUAL(access_transfers(2)->kinds[KIND_UPGRADE], 1);
	CHECK_EQUAL(access_transfers(2)->remote, 1);
	CHECK(!access_hits(0, VIRTUAL, false));
	CHECK(!access_hits(1, VIRTUAL, false));
}

/* The line moves each time; which word of it moves does not depend on what else lies there. */
static void test_words(void)
{
	uint64_t words, moves;

	start(0);
	access_at(1, 8, true, PC_B);
	words = access_transfers(1)->words;
	moves = access_transfers(1)->kinds[KIND_DIRTY];
	for (unsigned int i = 0; i < 3; i++) {
		access_at(0, 0, true, PC_A);
		access_at(1, 8, true, PC_B);
	}
	CHECK_EQUAL(access_transfers(1)->words, words);
	CHECK_EQUAL(access_transfers(1)->kinds[KIND_DIRTY], moves + 3);
	/* A word of another core counts although the line is there already. */
	access_at(1, 0, false, PC_B);
	CHECK_EQUAL(access_transfers(1)->words, words + 1);
	CHECK_EQUAL(access_transfers(1)->kinds[KIND_DIRTY], moves + 3);
}

/* The stall of vCPU 1 for a line that vCPU 0 has, and of vCPU 0 to get it back. */
static void costs(uint32_t group, uint64_t offset, uint64_t pc, uint64_t first, uint64_t second)
{
	uint64_t zero, one = stalled(1);

	start(group);
	access_at(0, offset, true, PC_B);
	zero = stalled(0);
	access_at(1, offset, true, pc);
	access_at(0, offset, true, PC_B);
	CHECK_EQUAL(stalled(1) - one, first);
	CHECK_EQUAL(stalled(0) - zero, second);
}

static void test_free_by_pc(void)
{
	uint64_t before = access_transfers(0)->free;

	costs(0, 0, PC_A, 100, 100);
	/* From the access with A on, for others too. */
	costs(1, 0, PC_A, 0, 0);
	CHECK_EQUAL(access_transfers(0)->free - before, 1);
	costs(1, 0, PC_A + 1, 100, 100);
	costs(2, 64, PC_A, 100, 100);
}

static void test_free_by_address(void)
{
	costs(2, 63, PC_B, 0, 0);
	costs(2, 64, PC_B, 100, 100);
}

static void test_spinner_is_woken_by_the_write_of_what_it_looks_at(void)
{
	start(0);
	access_at(0, 0, false, PC_A);
	access_pause(0);
	CHECK(schedule_parked(0));
	access_at(1, 64, true, PC_B);
	CHECK(schedule_parked(0));
	access_at(1, 0, false, PC_B);
	/* A read takes nothing away. */
	access_at(1, 0, true, PC_B);
	schedule_turn(0);
	CHECK(!schedule_parked(0));
	CHECK_EQUAL(schedule_clock(0), schedule_clock(1));
}

static void test_changed_line_is_looked_at_again(void)
{
	start(0);
	access_at(0, 0, false, PC_A);
	access_at(1, 0, true, PC_B);
	access_pause(0);
	CHECK(!schedule_parked(0));
	/* Nothing looked at since: parked. */
	access_pause(0);
	CHECK(schedule_parked(0));
}

static char *text;

static void has(const char *what)
{
	if (!strstr(text, what))
		fprintf(stderr, "no %s in %s\n", what, text);
	CHECK(strstr(text, what));
}

static void window(FILE *out)
{
	static const struct labels labels = { 7, 8, 0 };

	start(0);
	statistics_reset();
	access_at(0, 0, true, PC_A);
	statistics_end(0, &labels);
	for (unsigned int c = 0; c < 3; c++)
		statistics_work(c);
	statistics_begin(0);
	statistics_op(0);
	statistics_op(0);
	statistics_op(1);
	access_at(1, 0, true, PC_B);
	access_at(0, 0, false, PC_A);
	access_at(2, 0, false, PC_A);
	schedule_spin(2, 700);
	access_at(3, 0, false, PC_A);
	access_at(0, 64, true, PC_A);
	counters[0].instructions += 11;
	schedule_stall(0, 1000);
	statistics_end(0, &labels);
	statistics_end(0, &labels);
	fflush(out);
}

static void test_window(FILE *out)
{
	window(out);
	/* One line only: that of the end whose window had begun. */
	CHECK(strchr(text, '\n') && !strchr(text, '\n')[1]);
	has("\"type\":\"window\",\"point\":7,\"seed\":8,\"group\":0,\"window\":0,\"active\":3,");
	/* vCPU 0 in the window: the read of a dirty line, after it has queued for it; memory; 1000. */
	has("\"ops\":3,\"instructions\":11,");
	/* vCPU 2 has finished no operation, and counts; vCPU 3 has no worker, and does not. */
	has("\"transfers\":{\"memory\":1,\"unwritten\":0,\"clean\":1,\"dirty\":2,\"upgrade\":0,"
	    "\"remote\":1,\"free\":0}");
	/* By those that have a worker; by an instruction, on all four. */
	has(",\"idle\":0,\"words\":3,\"switches\"");
	has(",\"words\":3}");
	has(",\"words\":1}");
	has("\"spin\":700,\"idle\":0,");
	has("{\"vcpu\":2,\"ops\":0,\"instructions\":0,");
	has("{\"vcpu\":3,\"ops\":0,\"instructions\":0,");
	has("\"memory\":0,\"unwritten\":0,\"clean\":1,\"dirty\":0,\"upgrade\":0,\"remote\":1,\"free\":0,");
	has("\"lines\":[{\"pa\":\"0x100000\",\"va\":\"0xffff888000100000\",\"memory\":0,\"clean\":2,"
	    "\"dirty\":2,\"upgrade\":0,\"remote\":1,");
	has("\"pc\":\"0xffffffff81000020\",\"va\":\"0xffff888000100000\",\"reads\":0,\"writes\":1,");
	has("\"pc\":\"0xffffffff81000010\",\"va\":\"0xffff888000100000\",\"reads\":3,\"writes\":0,");
	has("\"lost\":0}");
}

/* It writes elsewhere than the other tests, whose output is one window. */
static void test_mode_ends(FILE *others)
{
	static const struct labels labels = { 7, 8, 0 };
	char *printed;
	size_t size;
	FILE *out = open_memstream(&printed, &size);

	CHECK(out);
	statistics_open(&machine, out);
	start(0);
	statistics_mode_ends(&labels);
	fclose(out);
	CHECK(strstr(printed, "{\"type\":\"mode\",\"mode\":\"detailed\",\"point\":7,") == printed);
	free(printed);
	statistics_open(&machine, others);
}

/* Core 1 takes its place in a queue at a lock, and spins on memory of its own until core 0 writes there. */
static void test_spinning_is_for_the_lock(void)
{
	char *printed, expected[64];
	uint64_t spun;
	size_t size;
	FILE *out = open_memstream(&printed, &size);

	CHECK(out);
	start(0);
	statistics_reset();
	access_at(1, 0, true, PC_A);
	access_locked(1, VIRTUAL);
	access_pause(1);
	schedule_turn(1);
	statistics_begin(0);
	spun = schedule_waits(1).spin;
	access_at(0, 0, true, PC_A);
	access_locked(0, VIRTUAL + 8);
	access_at(1, 0, true, PC_A);
	access_locked(1, VIRTUAL + 8);
	access_at(1, 64, false, PC_B);
	access_pause(1);
	schedule_stall(0, 5000);
	access_at(0, 64, true, PC_A);
	schedule_turn(1);
	/* Once more at the same lock, and then at another, for which it does not spin. */
	access_at(1, 0, true, PC_A);
	access_locked(1, VIRTUAL + 8);
	access_pause(1);
	access_at(1, 128, true, PC_B);
	access_locked(1, VIRTUAL + 128);
	spun = schedule_waits(1).spin - spun;
	CHECK(spun >= 80);
	access_settle_spinning();
	hot_print(9, out);
	fclose(out);
	snprintf(expected, sizeof(expected), "\"spin\":%llu,", (unsigned long long)spun);
	/* The line that is waited for most, and the only one. */
	CHECK(strstr(printed, "\"lines\":[{\"pa\":\"0x100000\"") == printed);
	CHECK(strstr(printed, expected));
	CHECK(strstr(printed, "\"pa\":\"0x100040\""));
	for (char *at = strstr(printed, expected) + 1; (at = strstr(at, "\"spin\":")); at++)
		CHECK(!strncmp(at, "\"spin\":0,", 9));
	free(printed);
}

/* More lines than the table has room for: what is lost is said. */
static void test_hot_table_overflows(void)
{
	char *printed;
	size_t size;
	FILE *out = open_memstream(&printed, &size);
	struct transfer t = { .kind = KIND_DIRTY, .stall = 100 };

	CHECK(out);
	hot_reset();
	for (uint64_t i = 0; i < 1 << 16; i++)
		hot_transfer(&(struct place){ i << 6, i << 6, PC_A }, &t, true);
	hot_print(1, out);
	fclose(out);
	CHECK(strstr(printed, "\"lost\":"));
	CHECK(!strstr(printed, "\"lost\":0"));
	free(printed);
}

/* With a path: the line of a window is left there. */
int main(int argc, char **argv)
{
	size_t size;
	FILE *out = open_memstream(&text, &size);

	CHECK(out);
	schedule_open(&machine);
	CHECK(access_open(&machine));
	CHECK(hot_open());
	statistics_open(&machine, out);
	for (unsigned int c = 0; c < machine.vcpus; c++) {
		schedule_attach(c);
		CHECK(schedule_count(c, &counters[c]));
	}
	rules = rules_file("1:pc:0xffffffff81000010-0xffffffff81000011\n"
			   "2:va:0xffff888000100000-0xffff888000100040\n");
	test_cost();
	test_words();
	test_free_by_pc();
	test_free_by_address();
	test_spinner_is_woken_by_the_write_of_what_it_looks_at();
	test_changed_line_is_looked_at_again();
	test_spinning_is_for_the_lock();
	test_mode_ends(out);
	test_window(out);
	test_hot_table_overflows();
	fclose(out);
	if (argc > 1) {
		out = fopen(argv[1], "w");
		CHECK(out && fputs(text, out) >= 0 && !fclose(out));
	}
	free(text);
	return 0;
}
