// SPDX-License-Identifier: GPL-2.0-only
/*
 * fscale-primitives CPU,CPU[,CPU]...: prints the cost of cache-line transfers, atomics and locks as JSON.
 * Exit codes: 0; 1, a system call failed; 2, wrong usage.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "crowd.h"
#include "transfers.h"

#define MAX_CPUS 4096

struct kind {
	const char *name;
	size_t offset;
};

static const struct kind kinds[] = {
	{ "hit", offsetof(struct transfer, hit) },
	{ "dirty", offsetof(struct transfer, dirty) },
	{ "dirty_add", offsetof(struct transfer, dirty_add) },
	{ "upgrade", offsetof(struct transfer, upgrade) },
	{ "add_after_read", offsetof(struct transfer, add_after_read) },
	{ "clean", offsetof(struct transfer, clean) },
};

static const unsigned int nkinds = sizeof(kinds) / sizeof(*kinds);

static int failed(const char *call)
{
	fprintf(stderr, "fscale-primitives: %s: %s\n", call, strerror(errno));
	return -1;
}

/* The noise is larger than a hundredth. */
static json_t *number(double value)
{
	return isfinite(value) ? json_real(round(value * 100) / 100) : json_null();
}

/* A matrix per kind of transfer: rows are CPUs that get the line, columns CPUs that had it. */
static int transfers(json_t *result, const int *cpus, unsigned int count)
{
	json_t *matrices = json_object();
	const char *call;

	for (unsigned int kind = 0; kind < nkinds; kind++)
		json_object_set_new(matrices, kinds[kind].name, json_array());
	for (unsigned int to = 0; to < count; to++) {
		for (unsigned int kind = 0; kind < nkinds; kind++)
			json_array_append_new(json_object_get(matrices, kinds[kind].name),
					      json_array());
		for (unsigned int from = 0; from < count; from++) {
			struct transfer one = { NAN, NAN, NAN, NAN, NAN, NAN };
			unsigned int third = 0;

			while (third < count && (third == from || third == to))
				third++;
			if (from != to && transfer_measure(cpus[from], cpus[to],
							   third < count ? cpus[third] : -1,
							   &one, &call)) {
				json_decref(matrices);
				return failed(call);
			}
			for (unsigned int kind = 0; kind < nkinds; kind++) {
				json_t *rows = json_object_get(matrices, kinds[kind].name);
				double value = *(double *)((char *)&one + kinds[kind].offset);

				json_array_append_new(json_array_get(rows, to), number(value));
			}
		}
	}
	return json_object_set_new(result, "nanoseconds_of_transfers", matrices);
}

static int crowded(json_t *result, const int *cpus, unsigned int count)
{
	json_t *all = json_object();
	const char *call;

	for (const struct crowd *crowd = crowds; crowd->name; crowd++) {
		json_t *rates = json_object();

		for (unsigned int cores = 1;; cores = cores * 2 < count ? cores * 2 : count) {
			double rate, fairness;
			char name[16];

			if (crowd_measure(crowd, cpus, cores, &rate, &fairness, &call)) {
				json_decref(rates);
				json_decref(all);
				return failed(call);
			}
			snprintf(name, sizeof(name), "%u", cores);
			json_object_set_new(rates, name,
					    json_pack("{s:o, s:o}", "ops_per_second",
						      json_real(round(rate)), "slowest_of_mean",
						      number(fairness)));
			if (cores == count)
				break;
		}
		json_object_set_new(all, crowd->name, rates);
	}
	return json_object_set_new(result, "crowds", all);
}

static int alone(json_t *result, const int *cpus, unsigned int count)
{
	double one, all;
	struct core core;
	const char *call;

	if (core_measure(cpus[0], cpus[count > 1], &core, &call) ||
	    core_clock(cpus, 1, &one, &call) || core_clock(cpus, count, &all, &call))
		return failed(call);
	return json_object_set_new(
		result, "core",
		json_pack("{s:f, s:f, s:o, s:o, s:o, s:o, s:o}", "cycle_ns_alone", one,
			  "cycle_ns_of_all", all, "add_ns", number(core.add), "pause_ns",
			  number(core.relax), "memory_ns", number(core.memory),
			  "string_bytes_per_ns", number(core.string), "wake_ns",
			  number(core.wake)));
}

static unsigned int parse(char *text, int *cpus)
{
	unsigned int count = 0;
	char *end;

	for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		long cpu = strtol(word, &end, 10);

		if (*end || cpu < 0 || cpu >= MAX_CPUS || count == MAX_CPUS)
			return 0;
		cpus[count++] = (int)cpu;
	}
	return count;
}

int main(int argc, char **argv)
{
	static int cpus[MAX_CPUS];
	unsigned int count = argc == 2 ? parse(argv[1], cpus) : 0;
	json_t *result, *listed;
	int code = EXIT_FAILURE;

	if (count < 2) {
		fprintf(stderr, "usage: %s CPU,CPU[,CPU]...\n"
			"Measures cache-line transfers, atomics and locks on at least 2 CPUs, and prints JSON\n"
			"(times in ns).\n", argv[0]);
		return 2;
	}
	result = json_object();
	listed = json_array();
	for (unsigned int i = 0; i < count; i++)
		json_array_append_new(listed, json_integer(cpus[i]));
	json_object_set_new(result, "cpus", listed);
	if (!alone(result, cpus, count) && !transfers(result, cpus, count) &&
	    !crowded(result, cpus, count) &&
	    !json_dumpf(result, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(8)) &&
	    putchar('\n') != EOF && !fflush(stdout))
		code = EXIT_SUCCESS;
	json_decref(result);
	return code;
}
