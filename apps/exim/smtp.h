/* SPDX-License-Identifier: GPL-2.0-only */
/* The SMTP clients of one generator process: a closed loop over non-blocking connections. */
#ifndef APPS_EXIM_SMTP_H
#define APPS_EXIM_SMTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../common/util.h"

enum phase { PHASE_RUN, PHASE_DRAIN, PHASE_ABORT };

struct load {
	const uint16_t *ports;
	unsigned int nports;
	unsigned int clients;        /* in all processes together */
	unsigned int processes;
	unsigned int boxes;          /* mail boxes of each client */
	unsigned int per_connection; /* messages before QUIT */
	unsigned int backlog;        /* most messages accepted and not delivered */
	unsigned int size;           /* bytes of a message's body */
	uint64_t seed;
};

struct generator {
	_Alignas(CACHE_LINE) atomic_ulong accepted; /* messages that got their 250 */
	atomic_ulong cpu_ns;
	char error[256]; /* empty: none */
};

/* Memory that parent and generator processes share. */
struct shared {
	_Alignas(CACHE_LINE) atomic_int phase;
	_Alignas(CACHE_LINE) atomic_ulong accepted;  /* all processes together */
	_Alignas(CACHE_LINE) atomic_ulong delivered; /* as the delivery logs say */
	struct generator generator[];
};

/* Run process `index` until the phase says stop; its exit code: 0, or 1 with `error` set. */
int generate(const struct load *load, struct shared *shared, unsigned int index);

#endif
