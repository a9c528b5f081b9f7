/* SPDX-License-Identifier: GPL-2.0-only */
/* The two pipes to who started us (--sync-fds): requests come in, words go out. */
#ifndef FSCALE_REQUEST_H
#define FSCALE_REQUEST_H

#include <stdbool.h>

#include "bench.h"

/* Wait for the next request, one byte; *end is true where none will come any more. */
enum step request_wait(struct bench *b, bool *end);
/* Write a line. */
enum step request_answer(struct bench *b, const char *line);

#endif
