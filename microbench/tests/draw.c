// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints what the workloads draw and compute, for the tests.
 *   draw paths SEED STREAM COUNT    how often each of the 8^5 paths is drawn
 *   draw offset ID SIZE             the offset of a worker's block
 *   draw names FIRST COUNT          file names that count
 *   draw bucket NS                  the bucket of a latency, and its least nanoseconds
 *   draw poisson SEED ID RATE       a thousand arrivals, in nanoseconds; or fixed
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/blockio.h"
#include "../core/histogram.h"
#include "../core/names.h"
#include "../core/pace.h"
#include "../core/tree.h"

static void paths(uint64_t seed, uint64_t stream, uint64_t count)
{
	static uint64_t drawn[TREE_PATHS];
	char path[32];
	struct rng rng;

	tree_path_init(path);
	rng_seed(&rng, seed, stream);
	while (count--) {
		unsigned int index = 0;

		tree_path_draw(path, &rng);
		for (int level = 0; level < TREE_DEPTH; level++)
			index = index * 8 + (unsigned int)(path[2 * level] - '0');
		drawn[index]++;
	}
	for (unsigned int i = 0; i < TREE_PATHS; i++)
		printf("%llu\n", (unsigned long long)drawn[i]);
}

static void names(uint64_t first, uint64_t count)
{
	struct name name;

	name_init(&name, "share/7.", ".2");
	for (name_set(&name, first); count--; name_next(&name))
		puts(name.path);
}

static void arrivals(enum arrival arrival, const unsigned long long *v)
{
	struct pace pace;

	pace_init(&pace, v[2], arrival, v[0], (unsigned int)v[1], false);
	pace_begin(&pace, 0);
	for (int i = 0; i < 1000; i++, pace_next(&pace))
		printf("%llu\n", (unsigned long long)pace.next);
}

int main(int argc, char **argv)
{
	unsigned long long v[3] = { 0 };

	for (int i = 2; i < argc && i < 5; i++)
		v[i - 2] = strtoull(argv[i], NULL, 10);
	if (argc == 5 && !strcmp(argv[1], "paths"))
		paths(v[0], v[1], v[2]);
	else if (argc == 4 && !strcmp(argv[1], "offset"))
		printf("%lld\n", (long long)block_offset((unsigned int)v[0], v[1]));
	else if (argc == 4 && !strcmp(argv[1], "names"))
		names(v[0], v[1]);
	else if (argc == 3 && !strcmp(argv[1], "bucket"))
		printf("%u %llu\n", histogram_bucket(v[0]),
		       (unsigned long long)histogram_least(histogram_bucket(v[0])));
	else if (argc == 5 && !strcmp(argv[1], "poisson"))
		arrivals(ARRIVAL_POISSON, v);
	else if (argc == 5 && !strcmp(argv[1], "fixed"))
		arrivals(ARRIVAL_FIXED, v);
	else
		return 2;
	return 0;
}
