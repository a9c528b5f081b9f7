// SPDX-License-Identifier: GPL-2.0-only
/* Traces of one line and two with answers worked out by hand. */
#include "../coherence.h"
#include "../../../tests/check.h"

#define MEMORY (1ull << 20)

/* No sum of few of these is another of them, so that a cost tells where it came from. */
static struct parameters machine = {
	.cores_per_socket = 4,
	.lat_clean = 40,
	.lat_clean_remote = 211,
	.lat_dirty = 103,
	.lat_dirty_remote = 307,
	.lat_upgrade = 61,
	.lat_upgrade_remote = 197,
	.lat_memory = 181,
	.occupy_shared = 15,
	.queueing = 1,
};

static struct coherence directory;
static struct line *line;

static void start(void)
{
	coherence_empty(&directory);
	line = coherence_line(&directory, 0x1240);
}

static void hits(unsigned int core, bool write)
{
	CHECK(line_hits(line, core, write));
}

/* `core` must take the line at `now`, in this way, after having waited for `queue` of `stall`. */
static void takes(unsigned int core, bool write, uint64_t now, enum kind kind, bool remote,
		  uint64_t stall, uint64_t queue)
{
	struct transfer t;

	CHECK(!line_hits(line, core, write));
	t = coherence_take(&directory, line, core, write, now);
	CHECK_EQUAL(t.kind, kind);
	CHECK_EQUAL(t.remote, remote);
	CHECK_EQUAL(t.stall, stall);
	CHECK_EQUAL(t.queue, queue);
	CHECK(line_hits(line, core, write));
}

static void read(unsigned int core, uint64_t now, enum kind kind, bool remote, uint64_t stall)
{
	takes(core, false, now, kind, remote, stall, 0);
}

static void write(unsigned int core, uint64_t now, enum kind kind, bool remote, uint64_t stall)
{
	takes(core, true, now, kind, remote, stall, 0);
}

/* As MESI's E: nobody else has it, so that nobody is told. */
static void test_the_only_reader_owns_it_by_a_write(void)
{
	start();
	read(0, 0, KIND_MEMORY, false, 181);
	hits(0, false);
	CHECK(coherence_own(line, 0));
	hits(0, true);
	CHECK(!coherence_own(line, 1));
	read(1, 1000, KIND_DIRTY, false, 103);
	CHECK(!coherence_own(line, 0));
}

static void test_one_of_two_readers_does_not_own_it(void)
{
	start();
	read(0, 0, KIND_MEMORY, false, 181);
	read(MAX_VCPUS - 1, 1000, KIND_UNWRITTEN, true, 211);
	CHECK(!coherence_own(line, 0));
	write(0, 2000, KIND_UPGRADE, true, 197);
}

static void test_a_line_that_nobody_writes_is_not_dirty(void)
{
	start();
	read(0, 0, KIND_MEMORY, false, 181);
	takes(1, false, 1000, KIND_UNWRITTEN, false, 40, 0);
	takes(2, false, 1000, KIND_UNWRITTEN, false, 55, 15);
	takes(4, false, 2000, KIND_UNWRITTEN, true, 211, 0);
	hits(0, false);
	hits(1, false);
}

static void test_a_line_stays_written(void)
{
	start();
	write(0, 0, KIND_MEMORY, false, 181);
	read(1, 1000, KIND_DIRTY, false, 103);
	read(2, 2000, KIND_CLEAN, false, 40);

	start();
	read(0, 0, KIND_MEMORY, false, 181);
	CHECK(coherence_own(line, 0));
	read(1, 1000, KIND_DIRTY, false, 103);
	read(2, 2000, KIND_CLEAN, false, 40);
}

static void test_writer_of_a_line_that_another_has_read(void)
{
	start();
	read(0, 0, KIND_MEMORY, false, 181);
	write(1, 1000, KIND_UPGRADE, false, 61);
	CHECK(!line_hits(line, 0, false));
}

static void test_first_writer_owns(void)
{
	start();
	write(3, 0, KIND_MEMORY, false, 181);
	hits(3, false);
	CHECK(!line_hits(line, 2, false));
}

static void test_read_of_a_dirty_line_shares_it(void)
{
	start();
	write(0, 0, KIND_MEMORY, false, 181);
	read(1, 1000, KIND_DIRTY, false, 103);
	hits(0, false);
	CHECK(!line_hits(line, 0, true));
	CHECK(!line_hits(line, 1, true));
}

static void test_write_of_a_dirty_line_takes_it(void)
{
	start();
	write(0, 0, KIND_MEMORY, false, 181);
	write(1, 1000, KIND_DIRTY, false, 103);
	CHECK(!line_hits(line, 0, false));
}

static void test_third_reader_gets_it_clean(void)
{
	start();
	write(0, 0, KIND_MEMORY, false, 181);
	read(1, 1000, KIND_DIRTY, false, 103);
	read(2, 2000, KIND_CLEAN, false, 40);
	hits(0, false);
	hits(1, false);
}

static void test_upgrade_invalidates_all_others(void)
{
	start();
	read(0, 0, KIND_MEMORY, false, 181);
	read(1, 1000, KIND_UNWRITTEN, false, 40);
	read(2, 2000, KIND_UNWRITTEN, false, 40);
	write(1, 3000, KIND_UPGRADE, false, 61);
	CHECK(!line_hits(line, 0, false));
	CHECK(!line_hits(line, 2, false));
	read(0, 4000, KIND_DIRTY, false, 103);
}

static void test_writer_without_a_copy_waits_for_the_slower_of_data_and_answers(void)
{
	start();
	read(0, 0, KIND_MEMORY, false, 181);
	read(1, 1000, KIND_UNWRITTEN, false, 40);
	/* The answers, 61, take longer than the data, 40. */
	write(2, 2000, KIND_UPGRADE, false, 61);

	start();
	read(0, 0, KIND_MEMORY, false, 181);
	read(1, 1000, KIND_UNWRITTEN, false, 40);
	/* From the other socket the data, 211, takes longer than the answers, 197. */
	write(4, 2000, KIND_UPGRADE, true, 211);
}

static void test_sockets(void)
{
	start();
	write(0, 0, KIND_MEMORY, false, 181);
	write(4, 1000, KIND_DIRTY, true, 307);
	write(7, 2000, KIND_DIRTY, false, 103);
	read(8, 3000, KIND_DIRTY, true, 307);
	/* Both sockets 1 and 2 have it now, socket 0 has not. */
	read(3, 4000, KIND_CLEAN, true, 211);
	read(5, 5000, KIND_CLEAN, false, 40);
	read(2, 6000, KIND_CLEAN, false, 40);
	write(2, 7000, KIND_UPGRADE, true, 197);
}

static void test_upgrade_within_a_socket_is_not_remote(void)
{
	start();
	read(4, 0, KIND_MEMORY, false, 181);
	read(5, 1000, KIND_UNWRITTEN, false, 40);
	write(4, 2000, KIND_UPGRADE, false, 61);
}

static void test_cores_of_the_last_word(void)
{
	unsigned int last = MAX_VCPUS - 1;

	start();
	read(last, 0, KIND_MEMORY, false, 181);
	read(last - 1, 1000, KIND_UNWRITTEN, false, 40);
	read(0, 2000, KIND_UNWRITTEN, true, 211);
	write(last, 3000, KIND_UPGRADE, true, 197);
	CHECK(!line_hits(line, 0, false));
}

/* Sockets of 3: cores 63 and 64 are of one, in two words of the set of sharers. */
static void test_socket_across_words(void)
{
	machine.cores_per_socket = 3;
	start();
	read(63, 0, KIND_MEMORY, false, 181);
	read(64, 1000, KIND_UNWRITTEN, false, 40);
	read(65, 2000, KIND_UNWRITTEN, false, 40);
	read(62, 3000, KIND_UNWRITTEN, true, 211);
	machine.cores_per_socket = 4;
}

static void test_queue_of_writers(void)
{
	start();
	write(0, 0, KIND_MEMORY, false, 181);
	/* All at once: each waits for those before it. */
	takes(1, true, 1000, KIND_DIRTY, false, 103, 0);
	takes(2, true, 1000, KIND_DIRTY, false, 206, 103);
	takes(3, true, 1000, KIND_DIRTY, false, 309, 206);
	/* Busy until 1309; who comes in between waits for the rest only. */
	takes(0, true, 1300, KIND_DIRTY, false, 112, 9);
	/* Who comes when it has ended waits for nothing. */
	takes(1, true, 1412, KIND_DIRTY, false, 103, 0);
}

static void test_readers_occupy_it_shortly(void)
{
	start();
	write(0, 0, KIND_MEMORY, false, 181);
	takes(1, false, 1000, KIND_DIRTY, false, 103, 0);
	takes(2, false, 1000, KIND_CLEAN, false, 143, 103);
	/* The first clean read keeps it for 15, from 1103 on. */
	takes(3, false, 1000, KIND_CLEAN, false, 158, 118);
	takes(4, false, 1133, KIND_CLEAN, true, 211, 0);
}

static void test_upgrade_queues(void)
{
	start();
	write(0, 0, KIND_MEMORY, false, 181);
	takes(1, false, 1000, KIND_DIRTY, false, 103, 0);
	takes(0, true, 1050, KIND_UPGRADE, false, 114, 53);
	takes(1, true, 1050, KIND_DIRTY, false, 217, 114);
}

static void test_memory_does_not_occupy(void)
{
	start();
	write(0, 1000, KIND_MEMORY, false, 181);
	takes(1, true, 1000, KIND_DIRTY, false, 103, 0);
}

static void test_lines_do_not_queue_for_one_another(void)
{
	struct line *other;

	start();
	other = coherence_line(&directory, 0x1280);
	CHECK(other == line + 1);
	CHECK(coherence_line(&directory, 0x127f) == line);
	write(0, 0, KIND_MEMORY, false, 181);
	takes(1, true, 1000, KIND_DIRTY, false, 103, 0);
	line = other;
	write(0, 0, KIND_MEMORY, false, 181);
	takes(1, true, 1000, KIND_DIRTY, false, 103, 0);
}

static void migrate(void)
{
	machine.migratory = 1;
	start();
	write(0, 0, KIND_MEMORY, false, 181);
	read(1, 1000, KIND_DIRTY, false, 103);
	write(1, 2000, KIND_UPGRADE, false, 61);
}

static void test_a_line_that_migrates_comes_whole(void)
{
	migrate();
	read(2, 3000, KIND_DIRTY, false, 103);
	CHECK(!line_hits(line, 1, false));
	CHECK(coherence_own(line, 2));
	read(3, 4000, KIND_DIRTY, false, 103);
	CHECK(coherence_own(line, 3));
	machine.migratory = 0;
}

/* It has been read twice with no write between: from then on it is shared again. */
static void test_a_line_that_is_only_read_migrates_no_longer(void)
{
	migrate();
	read(2, 3000, KIND_DIRTY, false, 103);
	read(3, 4000, KIND_CLEAN, false, 40);
	hits(2, false);
	write(2, 5000, KIND_UPGRADE, false, 61);
	read(0, 6000, KIND_DIRTY, false, 103);
	hits(2, false);
	machine.migratory = 0;
}

/* Who wrote it last writes it again: nothing has moved from a core to another. */
static void test_a_line_that_its_writer_writes_again_does_not_migrate(void)
{
	machine.migratory = 1;
	start();
	write(0, 0, KIND_MEMORY, false, 181);
	read(1, 1000, KIND_DIRTY, false, 103);
	write(0, 2000, KIND_UPGRADE, false, 61);
	read(1, 3000, KIND_DIRTY, false, 103);
	hits(0, false);
	machine.migratory = 0;
}

/* The request has come while the line was busy: 23 of the 103 are over. */
static void test_a_request_overlaps_with_the_transfer_before(void)
{
	machine.overlap = 23;
	start();
	write(0, 0, KIND_MEMORY, false, 181);
	takes(1, true, 1000, KIND_DIRTY, false, 103, 0);
	takes(2, true, 1000, KIND_DIRTY, false, 183, 103);
	takes(3, true, 1000, KIND_DIRTY, false, 263, 183);
	takes(0, true, 1263, KIND_DIRTY, false, 103, 0);
	machine.overlap = 0;
}

static void test_without_queueing(void)
{
	machine.queueing = 0;
	start();
	write(0, 0, KIND_MEMORY, false, 181);
	takes(1, true, 1000, KIND_DIRTY, false, 103, 0);
	takes(2, true, 1000, KIND_DIRTY, false, 103, 0);
	machine.queueing = 1;
}

static void test_free_line_costs_nothing_but_moves(void)
{
	start();
	line->free = true;
	takes(0, true, 1000, KIND_MEMORY, false, 0, 0);
	takes(1, true, 1000, KIND_DIRTY, false, 0, 0);
	takes(5, false, 1000, KIND_DIRTY, true, 0, 0);
	takes(5, true, 1000, KIND_UPGRADE, true, 0, 0);
	CHECK_EQUAL(line->busy, 0);
	CHECK(!line_hits(line, 1, false));
}

static void test_emptied(void)
{
	start();
	write(0, 0, KIND_MEMORY, false, 181);
	takes(1, true, 1000, KIND_DIRTY, false, 103, 0);
	line->free = true;
	coherence_empty(&directory);
	CHECK(!line_hits(line, 1, false));
	takes(1, true, 0, KIND_MEMORY, false, 181, 0);
}

static void test_beyond_memory_there_is_no_line(void)
{
	CHECK(coherence_line(&directory, MEMORY - 1));
	CHECK(!coherence_line(&directory, MEMORY));
	CHECK_EQUAL(coherence_line(&directory, MEMORY - 1) - directory.lines, MEMORY / 64 - 1);
}

int main(void)
{
	CHECK(coherence_open(&directory, &machine, MEMORY));
	test_the_only_reader_owns_it_by_a_write();
	test_one_of_two_readers_does_not_own_it();
	test_a_line_that_nobody_writes_is_not_dirty();
	test_a_line_stays_written();
	test_writer_of_a_line_that_another_has_read();
	test_first_writer_owns();
	test_read_of_a_dirty_line_shares_it();
	test_write_of_a_dirty_line_takes_it();
	test_third_reader_gets_it_clean();
	test_upgrade_invalidates_all_others();
	test_writer_without_a_copy_waits_for_the_slower_of_data_and_answers();
	test_sockets();
	test_upgrade_within_a_socket_is_not_remote();
	test_cores_of_the_last_word();
	test_socket_across_words();
	test_queue_of_writers();
	test_readers_occupy_it_shortly();
	test_upgrade_queues();
	test_memory_does_not_occupy();
	test_lines_do_not_queue_for_one_another();
	test_a_line_that_migrates_comes_whole();
	test_a_line_that_is_only_read_migrates_no_longer();
	test_a_line_that_its_writer_writes_again_does_not_migrate();
	test_a_request_overlaps_with_the_transfer_before();
	test_without_queueing();
	test_free_line_costs_nothing_but_moves();
	test_emptied();
	test_beyond_memory_there_is_no_line();
	coherence_close(&directory);
	return 0;
}
