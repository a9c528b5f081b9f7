/* SPDX-License-Identifier: GPL-2.0-only */
/* What an x86 instruction costs beyond one like any other, from its bytes. */
#ifndef FSCALE_SIM_INSTRUCTION_H
#define FSCALE_SIM_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>

struct traits {
	bool pause;
	bool syscall;
	bool locked;	/* LOCK, or an xchg with memory: it takes a line to write it */
	bool string;	/* rep movs, stos and the like */
};

struct traits instruction_traits(const unsigned char *bytes, size_t size);

#endif
