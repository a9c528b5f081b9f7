/* SPDX-License-Identifier: GPL-2.0-only */
/* Actions at the counts where windows begin and end. */
#ifndef FSCALE_EDGE_H
#define FSCALE_EDGE_H

#include "roi.h"
#include "shm.h"

/* A worker has passed the start barrier; counting begins with the last one. */
void edge_start(struct shared *shm, uint32_t workers);
/* The warm-up is over, or window `number` begins, or the last one is over. */
void edge(struct shared *shm, uint32_t workers, enum mark mark, uint64_t number);

static inline void edge_operation(struct shared *shm, uint32_t workers)
{
	uint64_t number = 0;
	enum mark mark;

	roi_op();
	mark = tally_operation(&shm->tally, workers, &number);
	if (__builtin_expect(mark != MARK_NONE, 0))
		edge(shm, workers, mark, number);
}

#endif
