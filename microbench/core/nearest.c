// SPDX-License-Identifier: GPL-2.0-only
#include "nearest.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "workload.h"

#define ID_MAX 32

/* Levenshtein distance, without regard to case. */
static int distance(const char *a, const char *b)
{
	int row[ID_MAX + 1];
	size_t length = strnlen(b, ID_MAX);

	for (size_t j = 0; j <= length; j++)
		row[j] = (int)j;
	for (size_t i = 0; a[i] && i < ID_MAX; i++) {
		int diagonal = row[0];

		row[0] = (int)i + 1;
		for (size_t j = 0; j < length; j++) {
			int substitute = diagonal + (toupper((unsigned char)a[i]) !=
						     toupper((unsigned char)b[j]));
			int best = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;

			diagonal = row[j + 1];
			row[j + 1] = substitute < best ? substitute : best;
		}
	}
	return row[length];
}

void nearest_workloads(const char *id, char *text, size_t size)
{
	unsigned int count;
	const struct workload *const *all = workload_all(&count);
	int best = INT_MAX;
	size_t used = 0;

	for (unsigned int i = 0; i < count; i++) {
		int d = distance(id, all[i]->id);

		best = d < best ? d : best;
	}
	*text = '\0';
	for (unsigned int i = 0; i < count && used + ID_MAX < size; i++)
		if (distance(id, all[i]->id) == best)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
						 all[i]->id);
}
