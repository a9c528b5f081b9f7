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

static bool read_u64(const char *text, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && !*end;
}

static bool read_number(struct parameters *p, bool *given, const char *name, size_t length,
			const char *text)
{
	for (size_t i = 0; i < NUMBERS; i++) {
		const struct number *n = &numbers[i];
		uint64_t value;

		if (strlen(n->name) != length || strncmp(n->name, name, length))
			continue;
		if (!read_u64(text, &value) || value < n->least || value > n->most)
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
	if (!strncmp(argument, "rules=", 6)) {
		p->rules = value;
		return *value != '\0';
	}
	return read_number(p, given, argument, (size_t)(value - 1 - argument), value);
}

bool parameters_read(struct parameters *p, int argc, char **argv, char *why, size_t size)
{
	bool given[NUMBERS] = { false };

	*p = (struct parameters){ 0 };
	for (int i = 0; i < argc; i++) {
		if (!read_one(p, given, argv[i])) {
			snprintf(why, size, "%s is not a parameter, or its value is out of range", argv[i]);
			return false;
		}
	}
	for (size_t i = 0; i < NUMBERS; i++) {
		if (!given[i]) {
			snprintf(why, size, "%s is missing", numbers[i].name);
			return false;
		}
	}
	if (!p->out || !p->rules)
		snprintf(why, size, "%s is missing", p->out ? "rules" : "out");
	return p->out && p->rules;
}

void parameters_print(const struct parameters *p, FILE *file)
{
	for (size_t i = 0; i < NUMBERS; i++) {
		uint64_t value;

		memcpy(&value, (const char *)p + numbers[i].offset, sizeof(value));
		fprintf(file, "\"%s\":%" PRIu64 ",", numbers[i].name, value);
	}
}
