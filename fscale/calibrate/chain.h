/* SPDX-License-Identifier: GPL-2.0-only */
/* A cycle of lines in random order, each of which holds the address of the next. */
#ifndef FSCALE_CALIBRATE_CHAIN_H
#define FSCALE_CALIBRATE_CHAIN_H

#include <stdatomic.h>

#include "team.h"

#define CHAIN_LINES 128

struct link {
	_Alignas(APART) _Atomic(struct link *) next;
};

struct chain {
	struct link links[CHAIN_LINES];
};

void chain_build(struct chain *chain);

/* Every access needs the address that the one before it has loaded: latencies add up. */
void chain_read(struct chain *chain);
void chain_add(struct chain *chain);
/* Stores that need nothing of one another: each line becomes this core's, modified. */
void chain_own(struct chain *chain);

#endif
