// SPDX-License-Identifier: GPL-2.0-only
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

long long number(const char *name, const char *text, long long least, long long most)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < least || value > most) {
		fprintf(stderr, "--%s takes a whole number from %lld to %lld; it was given \"%s\"\n", name,
			least, most, text);
		exit(2);
	}
	return value;
}

static double seconds(const char *name, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !isfinite(value) || value < 0 || value > 1e6) {
		fprintf(stderr, "--%s takes seconds from 0 to 1000000; it was given \"%s\"\n", name, text);
		exit(2);
	}
	return value;
}

static void set(const struct option_spec *spec, const char *text)
{
	if (spec->count)
		*spec->count = (unsigned int)number(spec->name, text, spec->least, spec->most);
	else if (spec->seed)
		*spec->seed = (uint64_t)number(spec->name, text, 0, INT64_MAX);
	else if (spec->seconds)
		*spec->seconds = seconds(spec->name, text);
	else if (spec->flag)
		*spec->flag = true;
	else
		spec->take(spec->to, text);
}

void options_parse(const struct option_spec *specs, size_t count, int argc, char **argv,
		   void (*usage)(void))
{
	struct option options[OPTIONS_MAX + 1] = { 0 };
	int found, index;
	size_t i;

	if (count > OPTIONS_MAX)
		abort();
	for (i = 0; i < count; i++) {
		options[i].name = specs[i].name;
		options[i].has_arg = specs[i].flag ? no_argument : required_argument;
	}
	while ((found = getopt_long(argc, argv, "", options, &index)) != -1) {
		if (found != 0)
			usage();
		set(&specs[index], optarg);
	}
	if (optind != argc)
		usage();
}
