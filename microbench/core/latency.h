/* SPDX-License-Identifier: GPL-2.0-only */
/* Raw latencies of every operation, kept in memory and written when all is over. */
#ifndef FSCALE_LATENCY_H
#define FSCALE_LATENCY_H

#include "bench.h"

/* Map room for the samples of each worker, touched beforehand. */
enum step latency_prepare(struct bench *b);
/* Write DIR/worker-<id>.u32: the samples of the timed windows, little-endian. */
enum step latency_write(struct bench *b);

#endif
