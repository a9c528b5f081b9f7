/* SPDX-License-Identifier: GPL-2.0-only */
/* Follows Exim's main logs and counts what they say about messages. */
#ifndef APPS_EXIM_LOG_H
#define APPS_EXIM_LOG_H

#include <stddef.h>
#include <sys/types.h>

struct log_counts {
	unsigned long received;  /* <= */
	unsigned long delivered; /* Completed: every recipient is done */
	unsigned long trouble;   /* deferred, failed, or anything else that Exim complains of */
	char first[256];         /* the first of these lines */
};

struct log_file {
	int fd;
	off_t at;
	size_t have; /* bytes of an unfinished line */
	char buffer[65536];
};

/* Open `path` for following; -1 with errno. */
int log_open(struct log_file *log, const char *path);

/* Count what was appended since the last call; -1 with errno. */
int log_follow(struct log_file *log, struct log_counts *counts);

/* Count one line (no newline at its end). */
void log_line(const char *line, struct log_counts *counts);

#endif
