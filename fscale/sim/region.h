/* SPDX-License-Identifier: GPL-2.0-only */
/* Executes the guest's messages, the instructions of roi.h. */
#ifndef FSCALE_SIM_REGION_H
#define FSCALE_SIM_REGION_H

#include <stddef.h>

#include "../microbench/core/roi.h"
#include "statistics.h"

/* The message that an instruction encodes, or 0. */
enum roi_code region_code(const unsigned char *bytes, size_t size);

/* vCPU `c` sends a message; those on modes are handled elsewhere. */
void region_told(unsigned int c, enum roi_code code);

/* The values of the last messages. */
const struct labels *region_labels(void);

#endif
