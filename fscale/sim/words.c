// SPDX-License-Identifier: GPL-2.0-only
#include "words.h"

#include <stddef.h>
#include <sys/mman.h>

#include "coherence.h"

#define WORD_SHIFT 2
#define WORDS (1u << (LINE_SHIFT - WORD_SHIFT))

/* A bit for each word of a line. */
struct masks {
	uint16_t has;	/* the core has a copy of this word; */
	uint16_t owns;	/* it has written it, and no other core has a copy */
};

/* A row for each line: what any core has written (in `owns`), and the masks of each core. */
static struct masks *rows;
static uint64_t length, bytes;

bool words_open(unsigned int cores, uint64_t nlines)
{
	void *memory;

	length = 1 + cores;
	bytes = nlines * length * sizeof(*rows);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	rows = memory == MAP_FAILED ? NULL : memory;
	return rows;
}

void words_close(void)
{
	munmap(rows, bytes);
	rows = NULL;
}

void words_empty(void)
{
	madvise(rows, bytes, MADV_DONTNEED);
}

static uint16_t words_of(uint64_t virtual, unsigned int size)
{
	unsigned int at = (unsigned int)(virtual % (1u << LINE_SHIFT)), last = at + size - 1;

	last = last >> LINE_SHIFT ? WORDS - 1 : last >> WORD_SHIFT;
	return (uint16_t)((2u << last) - (1u << (at >> WORD_SHIFT)));
}

/* The words that other cores have: they lose them to a writer, and share them with a reader. */
static uint16_t take(struct masks *cores, struct masks *mine, uint16_t words, bool write)
{
	uint16_t others = 0;

	for (struct masks *other = cores; other < cores + length - 1; other++) {
		if (other == mine)
			continue;
		others |= other->has & words;
		other->owns &= (uint16_t)~words;
		if (write)
			other->has &= (uint16_t)~words;
	}
	mine->has |= words;
	if (write)
		mine->owns |= words;
	return others;
}

/* The words that an access needs and the core lacks. */
static uint16_t missing(const struct masks *mine, uint64_t virtual, unsigned int size, bool write)
{
	return words_of(virtual, size) & (uint16_t)~(write ? mine->owns : mine->has);
}

bool words_hit(uint64_t number, unsigned int core, uint64_t virtual, unsigned int size, bool write)
{
	return !missing(rows + number * length + 1 + core, virtual, size, write);
}

bool words_take(uint64_t number, unsigned int core, uint64_t virtual, unsigned int size, bool write)
{
	struct masks *row = rows + number * length, *mine = row + 1 + core;
	uint16_t words = missing(mine, virtual, size, write);
	uint16_t taken = take(row + 1, mine, words, write);

	if (!write)
		return taken & row->owns;
	row->owns |= words;
	return taken;
}
