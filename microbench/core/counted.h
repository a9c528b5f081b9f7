/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FSCALE_COUNTED_H
#define FSCALE_COUNTED_H

#include "bench.h"

/* Before the workers are forked: they set up one by one, and a simulator keeps the CPUs in step. */
void counted_prepare(struct bench *b);

/* After the workers have gone. */
void counted_finish(void);

/*
 * One run of cfg->windows windows by count, after a warm-up (tally.h). Only the
 * simulator tells them apart: the result has all that was done as one window.
 */
enum step counted_measure(struct bench *b);

#endif
