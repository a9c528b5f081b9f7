/* SPDX-License-Identifier: GPL-2.0-only */
/* JSON: the result of a run (BenchOutput) and the list of workloads (Descriptor). */
#ifndef FSCALE_OUTPUT_H
#define FSCALE_OUTPUT_H

#include "bench.h"

/* Print to stdout; false where that fails. */
bool output_result(const struct bench *b);
bool output_list(void);

#endif
