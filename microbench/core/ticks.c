// SPDX-License-Identifier: GPL-2.0-only
#include "ticks.h"

#include <stdio.h>
#include <string.h>

/* Then the counters of all CPUs run at one constant rate. */
static bool kernel_trusts_tsc(void)
{
#ifdef __x86_64__
	static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
	FILE *file = fopen(path, "re");
	char source[64] = "";

	if (!file)
		return false;
	if (!fgets(source, sizeof(source), file))
		*source = '\0';
	fclose(file);
	return !strcmp(source, "tsc\n");
#else
	return false;
#endif
}

struct ticks ticks_start(void)
{
	struct ticks start = { .tsc = kernel_trusts_tsc() };

	start.ns = now_ns();
	start.ticks = ticks_now(start.tsc);
	return start;
}

double ticks_length(const struct ticks *start)
{
	uint64_t ns = now_ns(), ticks = ticks_now(start->tsc);

	if (!start->tsc || ticks == start->ticks)
		return 1;
	return (double)(ns - start->ns) / (double)(ticks - start->ticks);
}
