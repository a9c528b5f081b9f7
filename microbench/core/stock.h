/* SPDX-License-Identifier: GPL-2.0-only */
/* Consuming workloads: how much stock, and the windows that use it up. */
#ifndef FSCALE_STOCK_H
#define FSCALE_STOCK_H

#include "bench.h"

/* Find what space, inodes and --max-stock allow; before anything is filled. */
enum step stock_limit(struct bench *b);
/* Measure the rate of a small stock and size and fill the first one by it. */
enum step stock_pilot(struct bench *b);
/* A stock of `units` a worker, without a pilot. */
enum step stock_exactly(struct bench *b, uint64_t units);
/* Windows and restocks until the timed windows add up to the duration. */
enum step stock_measure(struct bench *b);

#endif
