// SPDX-License-Identifier: GPL-2.0-only
/*
 * fscale-locks OUTPUT SETTING=NUMBER... CHILD: loads the BPF program locks.bpf.c, which this program
 * contains, runs CHILD, and then writes the profile to OUTPUT as one JSON object.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "program.h"
#include "turns.h"
#include "waits.h"

_Noreturn static void bad_setting(const char *word)
{
	fprintf(stderr, "fscale-locks: \"%s\" is not a setting NAME=NUMBER\n", word);
	exit(EXIT_FAILURE);
}

/* Sets one setting; false if none has that name. */
static bool set(struct settings *s, const char *name, size_t length, uint64_t value)
{
	struct memory *m = &s->memory;
	const struct {
		const char *name;
		unsigned long long *wide;
		unsigned int *narrow;
	} known[] = {
		{ "pid", NULL, &s->pid },
		{ "cores", NULL, &s->cores },
		{ "cgroup", &s->cgroup, NULL },
		{ "spin_bits", NULL, &s->spin_bits },
		{ "sleep_bits", NULL, &s->sleep_bits },
		{ "most_spun", NULL, &s->most_spun },
		{ "turn_ms", NULL, &s->turn_ms },
		{ "pause_ms", NULL, &s->pause_ms },
		{ "direct_map", &m->direct_map, NULL },
		{ "page_array", &m->page_array, NULL },
		{ "page_bits", NULL, &m->page_bits },
		{ "page_size", NULL, &m->page_size },
		{ "compound_head", NULL, &m->compound_head },
		{ "slab_mask", NULL, &m->slab_mask },
		{ "slab_value", NULL, &m->slab_value },
		{ "slab_word", NULL, &m->slab_word },
		{ "slab_cache", NULL, &m->slab_cache },
		{ "cache_name", NULL, &m->cache_name },
		{ "cache_size", NULL, &m->cache_size },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strlen(known[i].name) != length || strncmp(known[i].name, name, length))
			continue;
		if (known[i].wide)
			*known[i].wide = value;
		else
			*known[i].narrow = (unsigned int)value;
		return true;
	}
	return false;
}

static void read_settings(struct settings *s, char **words, int count)
{
	for (int i = 0; i < count; i++) {
		const char *equals = strchr(words[i], '=');
		char *end;
		uint64_t value;

		if (!equals || !equals[1])
			bad_setting(words[i]);
		value = strtoull(equals + 1, &end, 0);
		if (*end || !set(s, words[i], (size_t)(equals - words[i]), value))
			bad_setting(words[i]);
	}
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value); /* as bpftrace: addresses are negative */
}

/* A JSON array of what `entry` makes of each entry of a map. */
static json_t *all(struct bpf_object *object, const char *name, void *key, void *value,
		   json_t *(*entry)(const void *key, const void *value))
{
	int fd = program_map(object, name);
	json_t *entries = json_array();
	void *before = NULL;

	while (!bpf_map_get_next_key(fd, before, key)) {
		if (!bpf_map_lookup_elem(fd, key, value))
			json_array_append_new(entries, entry(key, value));
		before = key;
	}
	return entries;
}

static json_t *wait_entry(const void *key, const void *value)
{
	const struct wait_key *k = key;
	const struct wait_sum *v = value;

	return json_pack("[o, i, i, i, i, o, o, o]", number(k->lock), k->flags, k->exponent,
			 k->bucket, k->stack_id, number(v->count), number(v->total),
			 number(v->longest));
}

static json_t *other_entry(const void *key, const void *value)
{
	const struct thread_name *k = key;
	const struct wait_sum *v = value;

	return json_pack("[o, o]", json_stringn_nocheck(k->comm, strnlen(k->comm, sizeof(k->comm))),
			 number(v->total));
}

static json_t *lock_entry(const void *key, const void *value)
{
	const struct lock *v = value;

	return json_pack("[o, o, o, i, o]", number(*(const unsigned long long *)key),
			 number(v->page), number(v->cache), (int)v->cache_size,
			 json_stringn_nocheck(v->cache_name, strnlen(v->cache_name, NAME)));
}

static json_t *stack_entry(const void *key, const void *value)
{
	const unsigned long long *frames = value;
	json_t *addresses = json_array();

	for (int i = 0; i < FRAMES && frames[i]; i++)
		json_array_append_new(addresses, number(frames[i]));
	return json_pack("[i, o]", *(const int *)key, addresses);
}

static json_t *place_of(const struct memory *m)
{
	if (!m->direct_map)
		return json_null();
	return json_pack("{s:o, s:o}", "direct_map", number(m->direct_map),
			 "page_array", number(m->page_array));
}

static void write_profile(struct bpf_object *object, const struct memory *memory, const char *path)
{
	struct wait_key wait;
	struct wait_sum sum;
	struct lock lock;
	struct thread_name thread;
	unsigned long long address, frames[FRAMES];
	struct totals totals;
	unsigned int zero = 0, stack;
	json_t *profile;

	if (bpf_map_lookup_elem(program_map(object, "totals"), &zero, &totals))
		fail("cannot read the totals");
	profile = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			    "memory", place_of(memory),
			    "waits", all(object, "waits", &wait, &sum, wait_entry),
			    "others", all(object, "others", &thread, &sum, other_entry),
			    "locks", all(object, "locks", &address, &lock, lock_entry),
			    "stacks", all(object, "stacks", &stack, frames, stack_entry),
			    "active", number(totals.time_enabled),
			    "looked", number(totals.time_running),
			    "lost", number(totals.lost));
	if (!profile || json_dump_file(profile, path, JSON_COMPACT))
		fail(path);
	json_decref(profile);
}

int main(int argc, char **argv)
{
	struct settings settings = { 0 };
	struct bpf_object *object;

	if (argc < 3) {
		fprintf(stderr, "usage: %s OUTPUT SETTING=NUMBER... CHILD\n"
			"Profiles lock contention while CHILD runs, and writes JSON to OUTPUT.\n", argv[0]);
		return EXIT_FAILURE;
	}
	read_settings(&settings, argv + 2, argc - 3);
	/* With the layout of a page, but not where the pages are. */
	if (settings.memory.page_size && !settings.memory.direct_map)
		find_memory(&settings.memory);
	object = program_open(locks_begin, locks_end, &settings, sizeof(settings));
	run_with(object, &settings, argv[argc - 1]);
	write_profile(object, &settings.memory, argv[1]);
	bpf_object__close(object);
	return EXIT_SUCCESS;
}
