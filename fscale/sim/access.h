/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory accesses of the guest's kernel: their cost, and the lines that vCPUs spin on. */
#ifndef FSCALE_SIM_ACCESS_H
#define FSCALE_SIM_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "coherence.h"

/* Totals of one vCPU since the start. */
struct transfers {
	uint64_t kinds[KINDS];
	uint64_t remote, free, stall, queue;
	uint64_t words;		/* accesses that took a word of another core (words.h) */
};

bool access_open(const struct parameters *p);

/* All lines are cold. No vCPU runs. */
void access_begin(void);

/* vCPU `c` accesses `virtual`, at `physical`, with the instruction at `pc`. */
void access_line(unsigned int c, uint64_t virtual, uint64_t physical, bool write, uint64_t pc);

/* Whether an access of `virtual` surely hits and changes nothing; a fast check. */
bool access_hits(unsigned int c, uint64_t virtual, bool write);

/* vCPU `c` has accessed `size` bytes at `virtual`, as above, and words are counted. */
void access_words(unsigned int c, uint64_t virtual, unsigned int size, bool write, uint64_t pc);

/*
 * vCPU `c` accessed `virtual` with a locked instruction. A waiter spins on memory of its own or only
 * reads, so the line that it took last with a locked instruction is the lock's.
 */
void access_locked(unsigned int c, uint64_t virtual);

/* Spinning up to now belongs to earlier windows, or to their hot lines. */
void access_forget_spinning(void);
void access_settle_spinning(void);

/* vCPU `c` is at a PAUSE. */
void access_pause(unsigned int c);

const struct transfers *access_transfers(unsigned int c);

#endif
