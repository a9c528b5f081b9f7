/* SPDX-License-Identifier: GPL-2.0-only */
/* Short windows, one for each request: two runs can take turns on the same CPUs. */
#ifndef FSCALE_SLICES_H
#define FSCALE_SLICES_H

#include "bench.h"

/*
 * Run a window of --slice seconds for each request and answer "OPS SECONDS CPU
 * SETTLED END": whole operations, the seconds that a worker took on average
 * for its part of them, the workers' CPU time for them in seconds, and the seconds that
 * syncfs() took after it with --settle; OPS, SECONDS and CPU are 0 where the
 * edges of a slice were not known well enough. All operations have come
 * back when the answer is sent. Returns when the requests end.
 */
enum step slices_measure(struct bench *b);

#endif
