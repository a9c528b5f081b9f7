// SPDX-License-Identifier: GPL-2.0-only
#include "region.h"

#include <string.h>

#include "conflicts.h"

static uint32_t numbers[MAX_VCPUS];
static struct labels labels;

enum roi_code region_code(const unsigned char *bytes, size_t size)
{
	static const unsigned char head[] = { 0x0f, 0x1f, 0x84, 0x00 }, tail[] = { ROI_MAGIC };

	if (size != 8 || memcmp(bytes, head, sizeof(head)) || memcmp(bytes + 5, tail, sizeof(tail)))
		return 0;
	return bytes[4] <= ROI_PAIR ? (enum roi_code)bytes[4] : 0;
}

const struct labels *region_labels(void)
{
	return &labels;
}

void region_told(unsigned int c, enum roi_code code)
{
	switch (code) {
	case ROI_WORK:
		statistics_work(c);
		break;
	case ROI_OP:
		statistics_op(c);
		break;
	case ROI_BEGIN:
		statistics_begin(c);
		break;
	case ROI_END:
		statistics_end(c, &labels);
		break;
	case ROI_BIT_0:
	case ROI_BIT_1:
		numbers[c] = numbers[c] << 1 | (code == ROI_BIT_1);
		break;
	case ROI_POINT:
		labels.point = numbers[c];
		break;
	case ROI_SEED:
		labels.seed = numbers[c];
		break;
	case ROI_FREE:
		labels.group = numbers[c];
		break;
	case ROI_CALL:
	case ROI_RETURN:
		conflicts_call(c, code == ROI_CALL);
		break;
	case ROI_PAIR:
		conflicts_pair(numbers[c]);
		break;
	case ROI_FAST:
	case ROI_ORDERED:
	case ROI_DETAILED:
		break;
	}
}
