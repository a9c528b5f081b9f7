// SPDX-License-Identifier: GPL-2.0-only
#include "request.h"

#include <string.h>
#include <unistd.h>

#include "crew.h"

enum step request_wait(struct bench *b, bool *end)
{
	enum event event;
	ssize_t n;
	char byte;

	do {
		enum step step = crew_wait(b, NO_DEADLINE, b->cfg->sync_read, &event);

		if (step)
			return step;
	} while (event != EVENT_FD);
	n = read(b->cfg->sync_read, &byte, 1);
	if (n < 0)
		return bench_fail(b, "read", "--sync-fds");
	*end = n == 0;
	return STEP_OK;
}

enum step request_answer(struct bench *b, const char *line)
{
	size_t length = strlen(line);

	if (write(b->cfg->sync_write, line, length) != (ssize_t)length)
		return bench_fail(b, "write", "--sync-fds");
	return STEP_OK;
}
