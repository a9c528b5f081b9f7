/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * File names that count in hexadecimal: "0/00000000", "0/00000001", ... All have
 * the same length, and the next one is made by adding one to the digits in place.
 */
#ifndef FSCALE_NAMES_H
#define FSCALE_NAMES_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NAME_DIGITS 8

struct name {
	char path[64];
	char *digits;
};

/* `prefix`<digits>`suffix`, at number 0. */
static inline void name_init(struct name *name, const char *prefix, const char *suffix)
{
	snprintf(name->path, sizeof(name->path), "%s%0*d%s", prefix, NAME_DIGITS, 0, suffix);
	name->digits = name->path + strlen(prefix);
}

static inline void name_set(struct name *name, uint64_t number)
{
	for (int i = NAME_DIGITS - 1; i >= 0; i--, number >>= 4)
		name->digits[i] = "0123456789abcdef"[number & 15];
}

static inline void name_next(struct name *name)
{
	char *digit = name->digits + NAME_DIGITS - 1;

	while (*digit == 'f' && digit > name->digits)
		*digit-- = '0';
	*digit = *digit == '9' ? 'a' : (char)(*digit + 1);
}

#endif
