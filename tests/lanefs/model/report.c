// SPDX-License-Identifier: GPL-2.0-only
/* What a process did last, and how it says that something is wrong. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model.h"

#define KEPT	12
#define WIDTH	1400

static char history[KEPT][WIDTH];
static unsigned long noted;

/* Shorten runs of one character, of which long names consist, to `x{120}`. */
static void shorten(char *text)
{
	char *to = text;

	for (const char *from = text; *from;) {
		size_t run = 1;

		while (from[run] == *from)
			run++;
		if (run > 9) {
			to += sprintf(to, "%c{%zu}", *from, run);
		} else {
			memset(to, *from, run);
			to += run;
		}
		from += run;
	}
	*to = '\0';
}

/* Describe the operation that is about to be done. */
void note(struct process *p, const char *format, ...)
{
	char *line = history[noted++ % KEPT];
	int used = snprintf(line, WIDTH, "%lu: ", p->op);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line + used, WIDTH - (size_t)used, format, arguments);
	va_end(arguments);
	shorten(line);
}

/* Report a difference; the process ends after its current operation. */
void mismatch(struct process *p, const char *format, ...)
{
	char text[8 * WIDTH];
	int used = 0;
	va_list arguments;

	if (p->failed)
		return;
	p->failed = true;
	used += snprintf(text, sizeof(text), "DIFFERENCE in process %d (seed %llu), operation %lu: ",
			 p->number, (unsigned long long)p->options->seed, p->op);
	va_start(arguments, format);
	used += vsnprintf(text + used, 3 * WIDTH, format, arguments);
	va_end(arguments);
	shorten(text);
	used = (int)strlen(text);
	used += snprintf(text + used, 64, "\n  its last operations:\n");
	for (unsigned long n = noted > KEPT ? noted - KEPT : 0; n < noted; n++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "    %.300s\n",
				 history[n % KEPT]);
	/* One write, so that the reports of several processes do not mix. */
	if (write(STDOUT_FILENO, text, (size_t)used) < 0)
		_exit(2);
}

/* The test itself cannot go on. */
void fatal(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "model: ");
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "\n");
	va_end(arguments);
	exit(2);
}
