/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FSCALE_RUN_H
#define FSCALE_RUN_H

#include "bench.h"

/* Do the whole run; *b holds what it came to. Returns the exit code. */
int bench_run(const struct config *cfg, struct bench *b);

#endif
