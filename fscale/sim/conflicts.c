// SPDX-License-Identifier: GPL-2.0-only
#include "conflicts.h"

#include <inttypes.h>
#include <string.h>

#include "coherence.h"
#include "slab.h"

#define SIDES 2
/* A call touches some hundred lines. */
#define PLACES (1u << 15)
#define MOST (PLACES / 2)
/* Instructions of a side that are kept for a line. */
#define USERS 6

struct user {
	uint64_t pc;
	bool write;
};

struct touched {
	uint64_t line;				/* 0: nothing */
	uint64_t read[SIDES], written[SIDES];	/* a bit for each byte */
	struct user users[SIDES][USERS];
};

static FILE *out;
static bool inside[SIDES];
static struct touched table[PLACES];
static unsigned int places[MOST], nplaces;
static uint64_t lost;

void conflicts_open(FILE *file)
{
	out = file;
}

void conflicts_call(unsigned int c, bool entered)
{
	if (c < SIDES)
		inside[c] = entered;
}

bool conflicts_inside(unsigned int c)
{
	return c < SIDES && inside[c];
}

static struct touched *find(uint64_t line)
{
	unsigned int place = (unsigned int)(line * 0x9e3779b97f4a7c15u >> 40) % PLACES;

	while (table[place].line && table[place].line != line)
		place = (place + 1) % PLACES;
	if (!table[place].line) {
		if (nplaces == MOST)
			return NULL;
		places[nplaces++] = place;
		table[place].line = line;
	}
	return &table[place];
}

/* A writer is of more use than a reader: it takes the place of one. */
static void add_user(struct user *users, const struct user *user)
{
	struct user *place = NULL;

	for (unsigned int i = 0; i < USERS; i++) {
		if (users[i].pc == user->pc && users[i].write == user->write)
			return;
		if (!users[i].pc) {
			place = &users[i];
			break;
		}
		if (user->write && !users[i].write)
			place = &users[i];
	}
	if (place)
		*place = *user;
}

void conflicts_access(unsigned int c, uint64_t virtual, unsigned int size, bool write, uint64_t pc)
{
	const struct user user = { pc, write };

	for (unsigned int done = 0, part; done < size; done += part) {
		unsigned int at = (unsigned int)((virtual + done) % (1 << LINE_SHIFT));
		struct touched *touched = find((virtual + done) >> LINE_SHIFT);
		uint64_t bytes;

		part = (1 << LINE_SHIFT) - at;
		if (part > size - done)
			part = size - done;
		if (!touched) {
			lost++;
			continue;
		}
		bytes = (part == 64 ? ~0ull : (1ull << part) - 1) << at;
		*(write ? &touched->written[c] : &touched->read[c]) |= bytes;
		add_user(touched->users[c], &user);
	}
}

static void print_users(const struct user *users)
{
	fprintf(out, "[");
	for (unsigned int i = 0; i < USERS && users[i].pc; i++)
		fprintf(out, "%s{\"pc\":\"0x%" PRIx64 "\",\"write\":%s}", i ? "," : "", users[i].pc,
			users[i].write ? "true" : "false");
	fprintf(out, "]");
}

/* The bytes that a side writes and the other one accesses, or if there are none, that one writes. */
static void print_line(const struct touched *touched, uint64_t common)
{
	uint64_t bytes = common ? common : touched->written[0] | touched->written[1];
	uint64_t virtual = touched->line << LINE_SHIFT;
	struct slab_object object;

	fprintf(out, "{\"va\":\"0x%" PRIx64 "\",\"bytes\":\"0x%" PRIx64 "\",\"layout\":%s,", virtual,
		bytes, common ? "false" : "true");
	if (slab_find(virtual + (unsigned int)__builtin_ctzll(bytes), &object))
		fprintf(out, "\"cache\":\"%s\",\"object\":\"0x%" PRIx64 "\",\"size\":%" PRIu64 ",",
			object.cache, object.start, object.size);
	fprintf(out, "\"a\":");
	print_users(touched->users[0]);
	fprintf(out, ",\"b\":");
	print_users(touched->users[1]);
	fprintf(out, "}");
}

void conflicts_pair(uint32_t number)
{
	const char *comma = "";

	flockfile(out);
	fprintf(out, "{\"type\":\"conflicts\",\"pair\":%" PRIu32 ",\"lost\":%" PRIu64
		",\"lines\":[", number, lost);
	for (unsigned int i = 0; i < nplaces; i++) {
		struct touched *t = &table[places[i]];
		uint64_t all[SIDES] = { t->read[0] | t->written[0], t->read[1] | t->written[1] };

		if ((t->written[0] && all[1]) || (t->written[1] && all[0])) {
			fprintf(out, "%s", comma);
			print_line(t, (t->written[0] & all[1]) | (t->written[1] & all[0]));
			comma = ",";
		}
		memset(t, 0, sizeof(*t));
	}
	fprintf(out, "]}\n");
	fflush(out);
	funlockfile(out);
	nplaces = 0;
	lost = 0;
}
