// SPDX-License-Identifier: GPL-2.0-only
/* Traces of words with answers worked out by hand. */
#include "../coherence.h"
#include "../words.h"
#include "../../../tests/check.h"

#define CORES 4
#define LINES 16
#define BASE 0xffff888000001000ull

static bool access_in(uint64_t line, unsigned int core, uint64_t at, unsigned int size, bool write)
{
	bool taken = !words_hit(line, core, BASE + at, size, write) &&
		     words_take(line, core, BASE + at, size, write);

	CHECK(words_hit(line, core, BASE + at, size, write));
	return taken;
}

static void takes(unsigned int core, uint64_t at, unsigned int size, bool write)
{
	CHECK(access_in(3, core, at, size, write));
}

static void has(unsigned int core, uint64_t at, unsigned int size, bool write)
{
	CHECK(!access_in(3, core, at, size, write));
}

static void test_one_word(void)
{
	words_empty();
	has(0, 8, 4, true);
	takes(1, 8, 4, false);
	/* Both have it: the writer takes it from the reader, and then writes it alone. */
	takes(0, 8, 4, true);
	has(0, 8, 4, false);
	takes(2, 8, 4, true);
	takes(0, 8, 4, true);
}

static void test_what_nobody_writes_is_not_shared(void)
{
	words_empty();
	for (unsigned int core = 0; core < CORES; core++)
		has(core, 8, 8, false);
	/* The first write takes it from all, and each reads it anew. */
	takes(3, 8, 8, true);
	for (unsigned int core = 0; core < 3; core++)
		takes(core, 8, 8, false);
}

/* A core that has read a word alone writes it without telling anybody, and others then take it. */
static void test_a_silent_write(void)
{
	words_empty();
	has(0, 0, 4, false);
	has(0, 0, 4, true);
	takes(1, 0, 4, false);
}

static void test_neighbours(void)
{
	words_empty();
	for (unsigned int turn = 0; turn < 3; turn++) {
		for (unsigned int core = 0; core < CORES; core++)
			has(core, 16 * core, 16, true);
	}
	/* Bytes of one word are one word. */
	takes(0, 17, 1, false);
	has(0, 12, 4, true);
	/* Of two words one is another's. */
	takes(0, 12, 8, true);
	takes(1, 16, 4, false);
}

static void test_the_end_of_a_line(void)
{
	words_empty();
	has(0, 56, 8, true);
	has(0, 0, 4, true);
	/* The part in the next line is left out. */
	takes(1, 60, 8, false);
	takes(1, 56, 4, false);
	takes(1, 0, 64, true);
	takes(0, 0, 64, true);
	/* Another line has words of its own. */
	CHECK(!access_in(4, 1, 64, 64, true));
	has(0, 0, 64, true);
}

#define MEMBERS 32
#define SLOTS (LINES * 8)
#define LAYOUTS 1000

static uint32_t random_number(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

/* Each member gets a slot of eight bytes. */
static void shuffle(unsigned int *slots)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		slots[i] = i;
	for (unsigned int i = 0; i < MEMBERS; i++) {
		unsigned int other = i + random_number() % (SLOTS - i), slot = slots[i];

		slots[i] = slots[other];
		slots[other] = slot;
	}
}

/* The same accesses of the same members take as many words wherever these lie, and other lines. */
static void test_a_thousand_layouts(void)
{
	static struct { unsigned int core, member, size; bool write; } trace[400];
	static const struct parameters machine = { .cores_per_socket = CORES };
	const unsigned int accesses = sizeof(trace) / sizeof(*trace);
	unsigned int slots[SLOTS], fewest = accesses, most = 0, first = 0;
	struct coherence directory;

	CHECK(coherence_open(&directory, &machine, LINES << LINE_SHIFT));
	for (unsigned int i = 0; i < accesses; i++) {
		trace[i].core = random_number() % CORES;
		trace[i].member = random_number() % MEMBERS;
		trace[i].size = random_number() % 2 ? 8 : 4;
		/* Half of the members are only read. */
		trace[i].write = trace[i].member % 2 && random_number() % 2;
	}
	for (unsigned int layout = 0; layout < LAYOUTS; layout++) {
		unsigned int words = 0, moves = 0;

		words_empty();
		coherence_empty(&directory);
		shuffle(slots);
		for (unsigned int i = 0; i < accesses; i++) {
			uint64_t at = 8 * slots[trace[i].member];
			struct line *line = coherence_line(&directory, at);

			words += access_in(at >> LINE_SHIFT, trace[i].core, at, trace[i].size,
					   trace[i].write);
			if (!line_hits(line, trace[i].core, trace[i].write))
				moves += coherence_take(&directory, line, trace[i].core,
							trace[i].write, 0).kind >= KIND_CLEAN;
		}
		first = layout ? first : words;
		CHECK_EQUAL(words, first);
		fewest = moves < fewest ? moves : fewest;
		most = moves > most ? moves : most;
	}
	CHECK(first);
	CHECK(most > fewest + accesses / 20);
	coherence_close(&directory);
}

int main(void)
{
	CHECK(words_open(CORES, LINES));
	test_one_word();
	test_what_nobody_writes_is_not_shared();
	test_a_silent_write();
	test_neighbours();
	test_the_end_of_a_line();
	test_a_thousand_layouts();
	words_close();
	return 0;
}
