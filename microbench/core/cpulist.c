// SPDX-License-Identifier: GPL-2.0-only
#include "cpulist.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_number(const char **text, int *number)
{
	char *end;
	long value;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	value = strtol(*text, &end, 10);
	if (errno || value >= CPU_LIST_MAX)
		return false;
	*number = (int)value;
	*text = end;
	return true;
}

static bool add(int **cpus, int *count, int cpu)
{
	int *more;

	for (int i = 0; i < *count; i++)
		if ((*cpus)[i] == cpu)
			return false;
	more = realloc(*cpus, (size_t)(*count + 1) * sizeof(int));
	if (!more)
		return false;
	*cpus = more;
	more[(*count)++] = cpu;
	return true;
}

int cpulist_parse(const char *text, int **cpus)
{
	int count = 0, first, last;

	*cpus = NULL;
	do {
		if (!parse_number(&text, &first))
			goto err;
		last = first;
		if (*text == '-') {
			text++;
			if (!parse_number(&text, &last) || last < first)
				goto err;
		}
		for (int cpu = first; cpu <= last; cpu++)
			if (!add(cpus, &count, cpu))
				goto err;
	} while (*text == ',' && text++);
	if (*text && strcmp(text, "\n"))
		goto err;
	return count;
err:
	free(*cpus);
	*cpus = NULL;
	return -1;
}

bool cpu_online(int cpu)
{
	FILE *file = fopen("/sys/devices/system/cpu/online", "r");
	char line[4096];
	int *online = NULL;
	int count = -1;
	bool found = false;

	if (!file)
		return true;	/* no sysfs: pinning will tell */
	if (fgets(line, sizeof(line), file))
		count = cpulist_parse(line, &online);
	fclose(file);
	for (int i = 0; i < count; i++)
		found = found || online[i] == cpu;
	free(online);
	return found || count < 0;
}
