// SPDX-License-Identifier: GPL-2.0-only
#include "median.h"

#include <stdlib.h>

static int ascending(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

double median(double *values, unsigned int count)
{
	qsort(values, count, sizeof(*values), ascending);
	return values[count / 2];
}
