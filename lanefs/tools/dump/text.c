// SPDX-License-Identifier: GPL-2.0-only
/* JSON as text for people. */
#include <stdio.h>

#include "dump.h"

static bool is_flat(const json_t *json)
{
	const char *key;
	json_t *value;
	size_t i;

	json_object_foreach((json_t *)json, key, value)
		if (json_is_object(value) || (json_is_array(value) && json_array_size(value) > 16))
			return false;
	json_array_foreach((json_t *)json, i, value)
		if (json_is_object(value) || json_is_array(value))
			return false;
	return true;
}

static void print_scalar(const json_t *json)
{
	size_t i;
	json_t *value;

	if (json_is_string(json)) {
		printf("%s", json_string_value(json));
	} else if (json_is_integer(json)) {
		printf("%lld", (long long)json_integer_value(json));
	} else if (json_is_boolean(json)) {
		printf("%s", json_is_true(json) ? "yes" : "no");
	} else if (json_is_array(json)) {
		json_array_foreach((json_t *)json, i, value) {
			printf("%s", i ? " " : "");
			print_scalar(value);
		}
	}
}

static void print_line(const json_t *json)
{
	const char *key, *gap = "";
	json_t *value;

	json_object_foreach((json_t *)json, key, value) {
		printf("%s%s ", gap, key);
		print_scalar(value);
		gap = "  ";
	}
}

static void print_value(const json_t *json, int depth);

static void print_member(const char *key, const json_t *value, int depth)
{
	printf("%*s%s:", 2 * depth, "", key);
	if (json_is_object(value) || (json_is_array(value) && !is_flat(value))) {
		putchar('\n');
		print_value(value, depth + 1);
	} else {
		putchar(' ');
		print_scalar(value);
		putchar('\n');
	}
}

static void print_value(const json_t *json, int depth)
{
	const char *key;
	json_t *value;
	size_t i;

	json_object_foreach((json_t *)json, key, value)
		print_member(key, value, depth);
	json_array_foreach((json_t *)json, i, value) {
		if (is_flat(value)) {
			printf("%*s", 2 * depth, "");
			if (json_is_object(value))
				print_line(value);
			else
				print_scalar(value);
			putchar('\n');
		} else {
			printf("%*s-\n", 2 * depth, "");
			print_value(value, depth + 1);
		}
	}
}

void print_text(const json_t *json)
{
	print_value(json, 0);
}
