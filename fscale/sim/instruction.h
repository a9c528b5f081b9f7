/* SPDX-License-Identifier: GPL-2.0-only */
/* Decodes an x86 instruction as far as its cost depends on it. */
#ifndef FSCALE_SIM_INSTRUCTION_H
#define FSCALE_SIM_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>

struct traits {
	bool pause;
	bool syscall;
	bool locked;	/* LOCK prefix, or xchg with memory */
	bool string;	/* rep movs, stos and the like */
};

struct traits instruction_traits(const unsigned char *bytes, size_t size);

#endif
