/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cache coherence of cores with caches that never evict: a directory that knows
 * for each line of 64 bytes which core owns it or which cores share it. A core
 * that has what it needs hits and costs nothing; otherwise the line is
 * transferred, and the core stalls for the latency of the transfer, after
 * transfers of the same line that came before. Times are in cycles.
 */
#ifndef FSCALE_SIM_COHERENCE_H
#define FSCALE_SIM_COHERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parameters.h"

#define LINE_SHIFT 6
#define SHARER_WORDS (MAX_VCPUS / 64)

enum kind {
	KIND_MEMORY,	/* no core had it */
	KIND_UNWRITTEN,	/* read of a line that others share and that nobody has written */
	KIND_CLEAN,	/* read of a line that others share since one has written it */
	KIND_DIRTY,	/* a line that another core has modified */
	KIND_UPGRADE,	/* write of a line that others share */
	KINDS,
};

struct line {
	uint64_t busy;		/* transfers of it wait until then */
	uint64_t sharers[SHARER_WORDS];
	uint16_t owner;		/* core + 1 that has modified it, or 0: the sharers have it, if any */
	uint16_t writer;	/* core + 1 that wrote it last, or 0 */
	bool written;		/* once */
	bool migrates;		/* from core to core, each of which reads and then writes it */
	bool free;		/* its transfers cost nothing */
	bool watched;		/* somebody waits for it to be taken away; for the scheduler */
};

struct coherence {
	const struct parameters *p;
	struct line *lines;
	uint64_t nlines;
};

struct transfer {
	enum kind kind;
	bool remote;		/* it crossed sockets */
	uint64_t stall;		/* cycles, of which */
	uint64_t queue;		/* were spent waiting for the line */
};

/* A directory for physical addresses below `bytes`; false without memory for it. */
bool coherence_open(struct coherence *c, const struct parameters *p, uint64_t bytes);
void coherence_close(struct coherence *c);

/* Reset: no core has any line, no transfer is under way, and no line is free. */
void coherence_empty(struct coherence *c);

static inline struct line *coherence_line(const struct coherence *c, uint64_t physical)
{
	uint64_t number = physical >> LINE_SHIFT;

	return number < c->nlines ? &c->lines[number] : NULL;
}

static inline uint64_t coherence_number(const struct coherence *c, const struct line *line)
{
	return (uint64_t)(line - c->lines);
}

static inline bool line_shared_by(const struct line *line, unsigned int core)
{
	return line->sharers[core / 64] >> core % 64 & 1;
}

static inline bool line_hits(const struct line *line, unsigned int core, bool write)
{
	return line->owner == core + 1 || (!write && line_shared_by(line, core));
}

/* A core that alone has a line, unmodified, owns it by a write that nobody else sees (MESI's E). */
bool coherence_own(struct line *line, unsigned int core);

/* `core` misses at `now` and takes the line. */
struct transfer coherence_take(const struct coherence *c, struct line *line, unsigned int core,
			       bool write, uint64_t now);

#endif
