/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FSCALE_CALIBRATE_MEDIAN_H
#define FSCALE_CALIBRATE_MEDIAN_H

/* The median of values, which are sorted in place; the upper one for an even count. */
double median(double *values, unsigned int count);

#endif
