/* SPDX-License-Identifier: GPL-2.0-only */
/* The latencies of the operations inside the windows, a histogram of each worker. */
#ifndef FSCALE_LATENCY_H
#define FSCALE_LATENCY_H

#include "bench.h"

#define LATENCY_TURNS "turns.hist"

/* Map the histograms of the workers, touched beforehand. */
enum step latency_prepare(struct bench *b);
/* A window is over, and no worker runs: add what it has to the result, or forget it. */
void latency_end_window(struct bench *b, bool keep);
/* The same, before that, for a turn that is kept: false when there is no memory. */
bool latency_add_turn(struct bench *b);
/* The number of latencies of a worker in the result. */
uint64_t latency_samples(const struct bench *b, unsigned int id);
/*
 * Write DIR/worker-<id>.hist: for each bucket that is not empty its least nanoseconds and its
 * count, both in 64 bits, little-endian. In turns also DIR/turns.hist: the number of a turn, from 1,
 * and the two, for all workers together.
 */
enum step latency_write(struct bench *b);

#endif
