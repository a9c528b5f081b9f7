/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory accesses of the guest's kernel: what each costs, and who spins on what. */
#ifndef FSCALE_SIM_ACCESS_H
#define FSCALE_SIM_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "coherence.h"

/* Of one vCPU, since it began. */
struct transfers {
	uint64_t kinds[KINDS];
	uint64_t remote, free, stall, queue;
};

bool access_open(const struct parameters *p);

/* All lines are cold. No vCPU runs. */
void access_begin(void);

/* vCPU `c` accesses `virtual`, at `physical`, with the instruction at `pc`. */
void access_line(unsigned int c, uint64_t virtual, uint64_t physical, bool write, uint64_t pc);

/* Whether what access_line() would do at `virtual` is nothing; it is fast. */
bool access_hits(unsigned int c, uint64_t virtual, bool write);

/*
 * The access of `virtual` that vCPU `c` has made was of a locked instruction. Who waits for a lock
 * spins on memory of his own, or only reads: what he took last by such an instruction is the lock.
 */
void access_locked(unsigned int c, uint64_t virtual);

/* All spinning so far belongs to windows before this one; or to its hot lines. */
void access_forget_spinning(void);
void access_settle_spinning(void);

/* vCPU `c` is at a PAUSE. */
void access_pause(unsigned int c);

const struct transfers *access_transfers(unsigned int c);

#endif
