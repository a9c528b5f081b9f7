// SPDX-License-Identifier: GPL-2.0-only
#include "precision.h"

/*
 * Looks are at 8 and 12 windows and at the doubles of both, and always at 8 or 12 batches: as the run
 * grows, neighbours are merged, so that what a batch shares with the next weighs less (batch means, as
 * in Law and Carson, Operations Research 27, 1979). Few looks keep the error of stopping early small.
 */
#define FEW 8
#define MORE 12
/* Squares of Student's t for 95% and 7 or 11 degrees of freedom. */
#define T2_FEW 5.5915
#define T2_MORE 4.8443

bool precise(const uint64_t *ns, uint64_t n, uint64_t thousandths)
{
	double mean = 0, squares = 0, wanted;
	uint64_t size = 1, batches = n;

	while (batches > MORE && batches % 2 == 0) {
		batches /= 2;
		size *= 2;
	}
	if (batches != FEW && batches != MORE)
		return false;
	for (uint64_t i = 0; i < n; i++)
		mean += (double)ns[i] / (double)batches;
	for (uint64_t batch = 0; batch < batches; batch++) {
		double sum = -mean;

		for (uint64_t i = 0; i < size; i++)
			sum += (double)ns[batch * size + i];
		squares += sum * sum;
	}
	wanted = mean * (double)thousandths / 1000;
	return (batches == FEW ? T2_FEW : T2_MORE) * squares / (double)(batches * (batches - 1)) <=
	       wanted * wanted;
}
