// SPDX-License-Identifier: GPL-2.0-only
/*
 * fscale-age OPTIONS DIRECTORY: ages the file system at a directory, and prints its layout as JSON.
 * fscale-age --fill DEVICE: writes a pattern to a block device.
 * fscale-age --save DEVICE IMAGE: keeps what was written to it since then.
 * fscale-age --restore IMAGE DEVICE: writes that to a block device of the same size.
 * Exit codes: 0; 1, a system call failed; 2, wrong usage.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "age.h"
#include "image.h"

#define MOST_STREAMS 64

static bool parse_number(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

static bool parse_real(const char *text, double most, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return *text && !*end && *value >= 0 && *value <= most;
}

/* VALUE:WEIGHT,VALUE:WEIGHT,... */
static bool parse_table(char *text, struct table *table)
{
	char *saved;

	table->count = 0;
	table->weight = 0;
	for (char *word = strtok_r(text, ",", &saved); word; word = strtok_r(NULL, ",", &saved)) {
		char *colon = strchr(word, ':');
		struct row *row = &table->rows[table->count];

		if (!colon || table->count == MAX_ROWS)
			return false;
		*colon = '\0';
		if (!parse_number(word, &row->value) || !row->value ||
		    !parse_number(colon + 1, &row->weight))
			return false;
		table->weight += row->weight;
		table->count++;
	}
	return table->weight;
}

static bool parse(int argc, char **argv, struct profile *profile, const char **progress)
{
	static const struct option known[] = {
		{ "append", required_argument, NULL, 'a' },
		{ "churn", required_argument, NULL, 'c' },
		{ "levels", required_argument, NULL, 'd' },
		{ "lifetime-sigma", required_argument, NULL, 'l' },
		{ "progress", required_argument, NULL, 'p' },
		{ "seed", required_argument, NULL, 's' },
		{ "sizes", required_argument, NULL, 'b' },
		{ "streams", required_argument, NULL, 'n' },
		{ "utilisation", required_argument, NULL, 'u' },
		{ 0 },
	};
	uint64_t streams = profile->streams;
	bool good = true;
	int option;

	while (good && (option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'a': good = parse_number(optarg, &profile->append) && profile->append; break;
		case 'b': good = parse_table(optarg, &profile->sizes); break;
		case 'c': good = parse_real(optarg, 1e6, &profile->churn); break;
		case 'd': good = parse_table(optarg, &profile->levels); break;
		case 'l': good = parse_real(optarg, 10, &profile->lifetime_sigma); break;
		case 'n':
			good = parse_number(optarg, &streams) && streams && streams <= MOST_STREAMS;
			break;
		case 'p': *progress = optarg; break;
		case 's': good = parse_number(optarg, &profile->seed); break;
		case 'u': good = parse_real(optarg, 1, &profile->utilisation); break;
		default: good = false;
		}
	}
	profile->streams = (unsigned int)streams;
	return good && optind == argc - 1 && profile->sizes.count && profile->levels.count;
}

static void print(const char *name, const struct layout *layout, const char *after)
{
	printf("\"%s\": {\"files\": %llu, \"bytes\": %llu, \"extents\": %llu, \"fragmented\": %llu",
	       name, (unsigned long long)layout->files, (unsigned long long)layout->bytes,
	       (unsigned long long)layout->extents, (unsigned long long)layout->fragmented);
	if (layout->has_free)
		printf(", \"free_bytes\": %llu, \"free_runs\": %llu, \"largest_free_run\": %llu",
		       (unsigned long long)layout->free_bytes, (unsigned long long)layout->free_runs,
		       (unsigned long long)layout->largest_free_run);
	printf("}%s", after);
}

int main(int argc, char **argv)
{
	struct profile profile = { .seed = 1, .append = 1 << 20, .utilisation = 0.8, .streams = 1 };
	const char *progress = NULL;
	struct aged aged = { 0 };

	if (argc == 3 && !strcmp(argv[1], "--fill"))
		return image_fill(argv[2]) ? EXIT_SUCCESS : EXIT_FAILURE;
	if (argc == 4 && !strcmp(argv[1], "--save"))
		return image_save(argv[2], argv[3]) ? EXIT_SUCCESS : EXIT_FAILURE;
	if (argc == 4 && !strcmp(argv[1], "--restore"))
		return image_restore(argv[2], argv[3]) ? EXIT_SUCCESS : EXIT_FAILURE;
	if (!parse(argc, argv, &profile, &progress)) {
		fprintf(stderr,
			"usage: %s --sizes BYTES:WEIGHT,... --levels DIRECTORIES:WEIGHT,...\n"
			"\t[--utilisation PART] [--churn TIMES] [--lifetime-sigma SIGMA] [--streams N]\n"
			"\t[--append BYTES] [--seed N] [--progress FILE] DIRECTORY\n"
			"       %s --fill DEVICE | --save DEVICE IMAGE | --restore IMAGE DEVICE\n",
			argv[0], argv[0]);
		return 2;
	}
	if (!age(&profile, argv[optind], progress, &aged))
		return EXIT_FAILURE;
	putchar('{');
	print("filled", &aged.filled, ", ");
	print("aged", &aged.aged, "}\n");
	return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
