// SPDX-License-Identifier: GPL-2.0-only
#include "bench.h"

#include <errno.h>

enum step bench_fail(struct bench *b, const char *call, const char *path)
{
	error_record(&b->shm->error, -1, call, NULL, path, errno, NULL);
	return STEP_FAILED;
}

uint64_t result_ops(const struct result *r, unsigned int id)
{
	uint64_t ops = 0;

	for (unsigned int i = 0; i < r->nwindows; i++)
		ops += r->windows[i].ops[id];
	return ops;
}
