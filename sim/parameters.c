// SPDX-License-Identifier: GPL-2.0-only
#include "parameters.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct number {
	const char *name;
	size_t offset;
	uint64_t least, most;
};

static const struct number numbers[] = {
#define ROW(name, least, most) { #name, offsetof(struct parameters, name), least, most },
	PARAMETERS(ROW)
#undef ROW
};

#define NUMBERS (sizeof(numbers) / sizeof(*numbers))

static bool read_u64(const char **text, int base, uint64_t *value)
{
	char *end;

	if (**text < '0' || (**text > '9' && base == 10))
		return false;
	errno = 0;
	*value = strtoull(*text, &end, base);
	if (errno || end == *text)
		return false;
	*text = end;
	return true;
}

static bool skip(const char **text, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*text, word, length))
		return false;
	*text += length;
	return true;
}

/* GROUP:KIND:LOW-HIGH, the addresses with 0x */
static bool read_rule(const char *text, struct free_rule *rule)
{
	uint64_t group;

	if (!read_u64(&text, 10, &group) || !group || group > UINT32_MAX)
		return false;
	rule->group = (uint32_t)group;
	if (skip(&text, ":pc:"))
		rule->kind = ADDRESS_PC;
	else if (skip(&text, ":va:"))
		rule->kind = ADDRESS_VIRTUAL;
	else if (skip(&text, ":pa:"))
		rule->kind = ADDRESS_PHYSICAL;
	else
		return false;
	return read_u64(&text, 16, &rule->low) && skip(&text, "-") &&
	       read_u64(&text, 16, &rule->high) && !*text && rule->low < rule->high;
}

static bool read_number(struct parameters *p, bool *given, const char *name, size_t length,
			const char *text)
{
	for (size_t i = 0; i < NUMBERS; i++) {
		const struct number *n = &numbers[i];
		uint64_t value;

		if (strlen(n->name) != length || strncmp(n->name, name, length))
			continue;
		if (!read_u64(&text, 10, &value) || *text || value < n->least || value > n->most)
			return false;
		memcpy((char *)p + n->offset, &value, sizeof(value));
		given[i] = true;
		return true;
	}
	return false;
}

static bool read_one(struct parameters *p, bool *given, const char *argument)
{
	const char *value = strchr(argument, '=');

	if (!value)
		return false;
	value++;
	if (!strncmp(argument, "out=", 4)) {
		p->out = value;
		return *value != '\0';
	}
	if (!strncmp(argument, "slab=", 5))
		return p->knows_slab = slab_parse(&p->slab, value);
	if (!strncmp(argument, "free=", 5))
		return p->nrules < MAX_FREE_RULES && read_rule(value, &p->rules[p->nrules++]);
	return read_number(p, given, argument, (size_t)(value - 1 - argument), value);
}

bool parameters_read(struct parameters *p, int argc, char **argv, char *why, size_t size)
{
	bool given[NUMBERS] = { false };

	*p = (struct parameters){ 0 };
	for (int i = 0; i < argc; i++) {
		if (!read_one(p, given, argv[i])) {
			snprintf(why, size, "%s is no parameter, or its value is wrong", argv[i]);
			return false;
		}
	}
	for (size_t i = 0; i < NUMBERS; i++) {
		if (!given[i]) {
			snprintf(why, size, "%s is missing", numbers[i].name);
			return false;
		}
	}
	if (!p->out)
		snprintf(why, size, "out is missing");
	return p->out;
}

void parameters_print(const struct parameters *p, FILE *file)
{
	for (size_t i = 0; i < NUMBERS; i++) {
		uint64_t value;

		memcpy(&value, (const char *)p + numbers[i].offset, sizeof(value));
		fprintf(file, "\"%s\":%" PRIu64 ",", numbers[i].name, value);
	}
}
