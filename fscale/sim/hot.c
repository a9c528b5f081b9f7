// SPDX-License-Identifier: GPL-2.0-only
#include "hot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "slab.h"

/*
 * Powers of two. An instruction without a place within PROBES is counted as lost. A line replaces the
 * one with the shortest waits, because data that is moved once would fill the table.
 */
#define LINES (1u << 14)
#define PCS (1u << 14)
#define PROBES 32u
#define LINE_PCS 24u
#define MOST_PCS 512u

struct toucher {
	uint64_t pc, reads, writes, stall, words;
	uint64_t virtual;	/* address of its last access: several objects may lie in the line */
};

struct hot_line {
	uint64_t number;	/* number + 1, or 0 for an empty place */
	uint64_t virtual;	/* address of the last access */
	uint64_t kinds[KINDS];
	uint64_t remote, stall, queue, spin;
	struct toucher pcs[LINE_PCS];
};

struct hot_pc {
	uint64_t pc;
	uint64_t transfers, stall, lines;
};

static struct hot_line *lines;
static struct hot_pc *pcs;
static uint64_t lost;

static unsigned int hash(uint64_t key)
{
	return (unsigned int)(key * 0x9e3779b97f4a7c15u >> 40);
}

bool hot_open(void)
{
	lines = calloc(LINES, sizeof(*lines));
	pcs = calloc(PCS, sizeof(*pcs));
	return lines && pcs;
}

void hot_reset(void)
{
	memset(lines, 0, LINES * sizeof(*lines));
	memset(pcs, 0, PCS * sizeof(*pcs));
	lost = 0;
}

static uint64_t waited(const struct hot_line *line)
{
	return line->stall + line->spin;
}

static struct hot_line *find_line(uint64_t number)
{
	struct hot_line *line, *least = &lines[hash(number) % LINES];

	for (unsigned int i = 0; i < PROBES; i++) {
		line = &lines[(hash(number) + i) % LINES];
		if (!line->number)
			line->number = number;
		if (line->number == number)
			return line;
		if (waited(line) < waited(least))
			least = line;
	}
	lost++;
	memset(least, 0, sizeof(*least));
	least->number = number;
	return least;
}

static struct hot_pc *find_pc(uint64_t pc)
{
	for (unsigned int i = 0; i < PROBES; i++) {
		struct hot_pc *found = &pcs[(hash(pc) + i) % PCS];

		if (!found->pc)
			found->pc = pc;
		if (found->pc == pc)
			return found;
	}
	return NULL;
}

/* The row of an instruction for the line, NULL if the line has no room. */
static struct toucher *find_toucher(struct hot_line *line, uint64_t pc)
{
	for (unsigned int i = 0; i < LINE_PCS; i++) {
		struct toucher *toucher = &line->pcs[i];

		if (!toucher->pc)
			toucher->pc = pc;
		if (toucher->pc == pc)
			return toucher;
	}
	return NULL;
}

void hot_transfer(const struct place *place, const struct transfer *t, bool write)
{
	struct hot_line *line = find_line((place->physical >> LINE_SHIFT) + 1);
	struct hot_pc *pc = find_pc(place->pc);
	struct toucher *toucher;

	if (pc) {
		pc->transfers++;
		pc->stall += t->stall;
	} else {
		lost++;
	}
	line->virtual = place->virtual;
	line->kinds[t->kind]++;
	line->remote += t->remote;
	line->stall += t->stall;
	line->queue += t->queue;
	toucher = find_toucher(line, place->pc);
	if (!toucher)
		return;
	if (pc)
		pc->lines += !(toucher->reads + toucher->writes);
	toucher->virtual = place->virtual;
	toucher->reads += !write;
	toucher->writes += write;
	toucher->stall += t->stall;
}

void hot_word(const struct place *place)
{
	struct hot_line *line = find_line((place->physical >> LINE_SHIFT) + 1);
	struct toucher *toucher;

	if (!line->virtual)
		line->virtual = place->virtual;
	toucher = find_toucher(line, place->pc);
	if (!toucher)
		return;
	toucher->virtual = place->virtual;
	toucher->words++;
}

void hot_spin(uint64_t number, uint64_t virtual, uint64_t cycles)
{
	struct hot_line *line = find_line(number + 1);

	if (!line->virtual)
		line->virtual = virtual;
	line->spin += cycles;
}

static int more(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static int by_line_wait(const void *a, const void *b)
{
	const struct hot_line *x = a, *y = b;
	int order = more(waited(x), waited(y));

	return order ? order : more(x->number, y->number);
}

static int by_toucher_stall(const void *a, const void *b)
{
	const struct toucher *x = a, *y = b;

	return more(x->stall, y->stall);
}

static int by_pc_stall(const void *a, const void *b)
{
	const struct hot_pc *x = a, *y = b;
	int order = more(x->stall, y->stall);

	return order ? order : more(x->pc, y->pc);
}

/* The slab cache that an address belongs to, and the start of the object. */
static void print_object(const struct hot_line *line, FILE *file)
{
	struct slab_object object;

	if (slab_find(line->virtual, &object))
		fprintf(file, ",\"cache\":\"%s\",\"object\":\"0x%" PRIx64 "\",\"size\":%" PRIu64,
			object.cache, object.start, object.size);
}

static void print_line(struct hot_line *line, FILE *file)
{
	fprintf(file,
		"{\"pa\":\"0x%" PRIx64 "\",\"va\":\"0x%" PRIx64 "\",\"memory\":%" PRIu64
		",\"clean\":%" PRIu64 ",\"dirty\":%" PRIu64 ",\"upgrade\":%" PRIu64
		",\"remote\":%" PRIu64 ",\"stall\":%" PRIu64 ",\"queue\":%" PRIu64
		",\"spin\":%" PRIu64,
		(line->number - 1) << LINE_SHIFT, line->virtual >> LINE_SHIFT << LINE_SHIFT,
		line->kinds[KIND_MEMORY], line->kinds[KIND_CLEAN], line->kinds[KIND_DIRTY],
		line->kinds[KIND_UPGRADE], line->remote, line->stall, line->queue,
		line->spin);
	print_object(line, file);
	fprintf(file, ",\"pcs\":[");
	qsort(line->pcs, LINE_PCS, sizeof(*line->pcs), by_toucher_stall);
	for (unsigned int i = 0, printed = 0; i < LINE_PCS; i++) {
		const struct toucher *t = &line->pcs[i];

		if (t->pc)
			fprintf(file,
				"%s{\"pc\":\"0x%" PRIx64 "\",\"va\":\"0x%" PRIx64
				"\",\"reads\":%" PRIu64 ",\"writes\":%" PRIu64
				",\"stall\":%" PRIu64 ",\"words\":%" PRIu64 "}",
				printed++ ? "," : "", t->pc, t->virtual, t->reads, t->writes,
				t->stall, t->words);
	}
	fprintf(file, "]}");
}

/* Sorts the tables; accesses after it count in another window. */
void hot_print(unsigned int most, FILE *file)
{
	qsort(lines, LINES, sizeof(*lines), by_line_wait);
	qsort(pcs, PCS, sizeof(*pcs), by_pc_stall);
	fprintf(file, "\"lines\":[");
	for (unsigned int i = 0; i < most && i < LINES && lines[i].number; i++) {
		fprintf(file, "%s", i ? "," : "");
		print_line(&lines[i], file);
	}
	fprintf(file, "],\"pcs\":[");
	for (unsigned int i = 0; i < MOST_PCS && pcs[i].pc; i++)
		fprintf(file,
			"%s{\"pc\":\"0x%" PRIx64 "\",\"transfers\":%" PRIu64 ",\"stall\":%" PRIu64
			",\"lines\":%" PRIu64 "}",
			i ? "," : "", pcs[i].pc, pcs[i].transfers, pcs[i].stall, pcs[i].lines);
	fprintf(file, "],\"lost\":%" PRIu64, lost);
	hot_reset();
}
