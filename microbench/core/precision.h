/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FSCALE_PRECISION_H
#define FSCALE_PRECISION_H

#include <stdbool.h>
#include <stdint.h>

/* The most windows that are looked at: 12 doubled three times. */
#define PRECISION_WINDOWS 96

/*
 * Whether `n` windows of the same number of operations, which took `ns` each, tell the rate well
 * enough: the half-width of its 95% band is at most so many thousandths of it. False for counts
 * at which nobody looks.
 */
bool precise(const uint64_t *ns, uint64_t n, uint64_t thousandths);

#endif
