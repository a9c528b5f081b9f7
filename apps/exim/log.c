// SPDX-License-Identifier: GPL-2.0-only
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STAMP 20 /* "2026-01-31 12:00:00 " */

int log_open(struct log_file *log, const char *path)
{
	log->at = 0;
	log->have = 0;
	log->fd = open(path, O_RDONLY | O_CLOEXEC);
	return log->fd < 0 ? -1 : 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);

	return length >= wanted && !strcmp(text + length - wanted, end);
}

void log_line(const char *line, struct log_counts *counts)
{
	const char *text = strlen(line) > STAMP ? line + STAMP : line;
	const char *mark = strchr(text, ' ');

	if (mark && !strncmp(mark, " <= ", 4)) {
		counts->received++;
	} else if (mark && !strncmp(mark, " => ", 4)) {
		/* a delivery; Completed follows */
	} else if (mark && !strcmp(mark, " Completed")) {
		counts->delivered++;
	} else if (!strncmp(text, "exim ", 5) && strstr(text, " daemon started: ")) {
		/* the daemon's first line */
	} else if (!strncmp(text, "exim ", 5) && ends_with(text, "daemon stopped")) {
		/* and its last */
	} else if (!counts->trouble++) {
		snprintf(counts->first, sizeof(counts->first), "%s", text);
	}
}

int log_follow(struct log_file *log, struct log_counts *counts)
{
	ssize_t n;
	char *start, *newline;

	for (;;) {
		n = pread(log->fd, log->buffer + log->have, sizeof(log->buffer) - 1 - log->have,
			  log->at);
		if (n < 0)
			return -1;
		if (n == 0)
			return 0;
		log->at += n;
		log->have += (size_t)n;
		log->buffer[log->have] = '\0';
		for (start = log->buffer; (newline = strchr(start, '\n')); start = newline + 1) {
			*newline = '\0';
			log_line(start, counts);
		}
		log->have -= (size_t)(start - log->buffer);
		memmove(log->buffer, start, log->have);
		if (log->have == sizeof(log->buffer) - 1) {
			errno = EOVERFLOW; /* no line of Exim's is that long */
			return -1;
		}
	}
}
