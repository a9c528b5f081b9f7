/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FSCALE_CALIBRATE_MEDIAN_H
#define FSCALE_CALIBRATE_MEDIAN_H

/* Of values, which are sorted in place; of an even number the upper one of the two in the middle. */
double median(double *values, unsigned int count);

#endif
