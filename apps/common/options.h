/* SPDX-License-Identifier: GPL-2.0-only */
/* The command lines of the load programs. */
#ifndef APPS_OPTIONS_H
#define APPS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A long option and the one place that its value goes to. */
struct option_spec {
	const char *name;
	unsigned int *count; /* a number from least to most */
	long long least, most;
	uint64_t *seed;
	double *seconds;
	bool *flag; /* set, and the option has no value */
	void (*take)(void *to, const char *text); /* anything else; exits when it is wrong */
	void *to;
};

#define OPTIONS_MAX 32

/* Fill in what `argv` says; what is wrong ends in `usage` or in a message and exit code 2. */
void options_parse(const struct option_spec *specs, size_t count, int argc, char **argv,
		   void (*usage)(void));

/* The number in `text`, or a message about option `name` and exit code 2. */
long long number(const char *name, const char *text, long long least, long long most);

#endif
