// SPDX-License-Identifier: GPL-2.0-only
#include "rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct rule {
	bool code;
	uint64_t low, high;
};

static struct rule rules[MAX_RULES];
static unsigned int nrules;

static bool read_rule(const char *text, uint32_t *group, struct rule *rule)
{
	char kind[3], end;

	if (sscanf(text, "%" SCNu32 ":%2[a-z]:0x%" SCNx64 "-0x%" SCNx64 "%c", group, kind,
		   &rule->low, &rule->high, &end) != 5)
		return false;
	rule->code = !strcmp(kind, "pc");
	return (rule->code || !strcmp(kind, "va")) && *group && rule->low < rule->high &&
	       end == '\n';
}

bool rules_begin(const char *path, uint32_t wanted, char *why, size_t size)
{
	struct rule rule;
	uint32_t group;
	char line[128];
	bool good = true;
	FILE *file;

	nrules = 0;
	if (!wanted)
		return true;
	file = fopen(path, "r");
	if (!file) {
		snprintf(why, size, "%s: %s", path, strerror(errno));
		return false;
	}
	while (good && fgets(line, sizeof(line), file)) {
		good = read_rule(line, &group, &rule) && (group != wanted || nrules < MAX_RULES);
		if (good && group == wanted)
			rules[nrules++] = rule;
	}
	if (!good)
		snprintf(why, size, "%s: not a valid rule, or too many rules: %s", path, line);
	else if (ferror(file))
		snprintf(why, size, "%s cannot be read", path);
	good = good && !ferror(file);
	fclose(file);
	return good;
}

bool rules_free(uint64_t virtual, uint64_t pc)
{
	for (unsigned int i = 0; i < nrules; i++) {
		uint64_t address = rules[i].code ? pc : virtual;

		if (address >= rules[i].low && address < rules[i].high)
			return true;
	}
	return false;
}
