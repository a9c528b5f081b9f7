// SPDX-License-Identifier: GPL-2.0-only
#include "coherence.h"

#include <string.h>
#include <sys/mman.h>

bool coherence_open(struct coherence *c, const struct parameters *p, uint64_t bytes)
{
	void *lines;

	c->p = p;
	c->nlines = bytes >> LINE_SHIFT;
	/* Pages of the directory take memory when they are first touched. */
	lines = mmap(NULL, c->nlines * sizeof(*c->lines), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	c->lines = lines == MAP_FAILED ? NULL : lines;
	return c->lines;
}

void coherence_close(struct coherence *c)
{
	munmap(c->lines, c->nlines * sizeof(*c->lines));
	c->lines = NULL;
}

void coherence_empty(struct coherence *c)
{
	madvise(c->lines, c->nlines * sizeof(*c->lines), MADV_DONTNEED);
}

/* The sharers with numbers in [first, end) of word w. */
static uint64_t sharers_within(const struct line *line, unsigned int w, unsigned int first,
			       unsigned int end)
{
	unsigned int low = w * 64, high = low + 64;
	uint64_t mask = ~0ull;

	if (end <= low || first >= high)
		return 0;
	if (first > low)
		mask &= ~0ull << (first - low);
	if (end < high)
		mask &= ~0ull >> (high - end);
	return line->sharers[w] & mask;
}

/* Whether cores of the socket of `core` share the line, and whether others do. */
static void locate(const struct coherence *c, const struct line *line, unsigned int core,
		   bool *near, bool *far)
{
	unsigned int size = (unsigned int)c->p->cores_per_socket, first = core / size * size;

	*near = *far = false;
	for (unsigned int w = 0; w < SHARER_WORDS; w++) {
		uint64_t here = sharers_within(line, w, first, first + size);

		*near |= here != 0;
		*far |= (line->sharers[w] & ~here) != 0;
	}
}

static void share(struct line *line, unsigned int core)
{
	line->sharers[core / 64] |= 1ull << core % 64;
}

static void own(struct line *line, unsigned int core)
{
	memset(line->sharers, 0, sizeof(line->sharers));
	line->owner = line->writer = (uint16_t)(core + 1);
	line->written = true;
}

static bool only_sharers(const struct line *line, unsigned int one, unsigned int other)
{
	for (unsigned int w = 0; w < SHARER_WORDS; w++) {
		uint64_t both = (w == one / 64 ? 1ull << one % 64 : 0) |
				(w == other / 64 ? 1ull << other % 64 : 0);

		if (line->sharers[w] != both)
			return false;
	}
	return true;
}

bool coherence_own(struct line *line, unsigned int core)
{
	if (!only_sharers(line, core, core))
		return false;
	own(line, core);
	return true;
}

/*
 * A line that a core reads and writes right after another one did migrates: the next reader gets
 * it whole, as if it alone had read it, until it does not write it before yet another reads.
 * (Stenstrom, Brorsson and Sandberg, "An Adaptive Cache Coherence Protocol Optimized for Migratory
 * Sharing", ISCA 1993.)
 */
static void learn(struct line *line, unsigned int core, bool write)
{
	if (write && !line->owner && line->writer && line->writer != core + 1 &&
	    only_sharers(line, core, line->writer - 1u))
		line->migrates = true;
	else if (!write && !line->owner)
		line->migrates = false;
}

static void hand_over(struct line *line, unsigned int core, bool write)
{
	if (write) {
		own(line, core);
		return;
	}
	if (line->owner && !line->migrates)
		share(line, line->owner - 1u);
	line->owner = 0;
	share(line, core);
}

/* Kind and latency of a transfer, and how long it keeps the line. */
static uint64_t latency(const struct coherence *c, const struct line *line, unsigned int core,
			bool write, struct transfer *t, uint64_t *occupied)
{
	const struct parameters *p = c->p;
	uint64_t cycles, fetch;
	bool near, far;

	if (line->owner) {
		t->kind = KIND_DIRTY;
		t->remote = (line->owner - 1) / p->cores_per_socket != core / p->cores_per_socket;
		return *occupied = t->remote ? p->lat_dirty_remote : p->lat_dirty;
	}
	locate(c, line, core, &near, &far);
	if (!near && !far) {
		t->kind = KIND_MEMORY;
		*occupied = 0;
		return p->lat_memory;
	}
	fetch = near ? p->lat_clean : p->lat_clean_remote;
	if (!write) {
		t->kind = line->written ? KIND_CLEAN : KIND_UNWRITTEN;
		t->remote = !near;
		*occupied = p->occupy_shared;
		return fetch;
	}
	t->kind = KIND_UPGRADE;
	t->remote = far;
	cycles = far ? p->lat_upgrade_remote : p->lat_upgrade;
	/* A core without a copy waits for the data and for the invalidations of the others. */
	if (!line_shared_by(line, core) && fetch > cycles)
		cycles = fetch;
	return *occupied = cycles;
}

struct transfer coherence_take(const struct coherence *c, struct line *line, unsigned int core,
			       bool write, uint64_t now)
{
	struct transfer t = { 0 };
	uint64_t occupied, cycles = latency(c, line, core, write, &t, &occupied);

	if (!line->free) {
		if (c->p->queueing && t.kind != KIND_MEMORY && line->busy > now)
			t.queue = line->busy - now;
		/* The request of who waits has come already: that part of the latency has gone by. */
		if (t.queue)
			cycles -= cycles < c->p->overlap ? cycles : c->p->overlap;
		if (occupied)
			line->busy = now + t.queue + (occupied < cycles ? occupied : cycles);
		t.stall = t.queue + cycles;
	}
	if (c->p->migratory)
		learn(line, core, write);
	hand_over(line, core, write);
	return t;
}
