/* SPDX-License-Identifier: GPL-2.0-only */
/* What the guest's program says with the instructions of roi.h. */
#ifndef FSCALE_SIM_REGION_H
#define FSCALE_SIM_REGION_H

#include <stddef.h>

#include "roi.h"
#include "statistics.h"

/* The code that these bytes of an instruction tell, or 0. */
enum roi_code region_code(const unsigned char *bytes, size_t size);

/* vCPU `c` says it; of the modes and of what is not about windows, nothing is done here. */
void region_told(unsigned int c, enum roi_code code);

/* What was told last. */
const struct labels *region_labels(void);

#endif
