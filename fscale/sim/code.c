// SPDX-License-Identifier: GPL-2.0-only
#include "code.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

/* Hash table, address -> block; its size is a power of two, and it is never full. */
#define PLACES (2 * CODE_BLOCKS)

static uint64_t pcs[CODE_BLOCKS], sums[CODE_BLOCKS];
static uint32_t places[PLACES];
/* Block 0 counts the instructions of all blocks that found no place. */
static unsigned int nblocks = 1;
static struct code_counters *counted[MAX_VCPUS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void code_reset(void)
{
	memset(places, 0, sizeof(places));
	memset(sums, 0, sizeof(sums));
	nblocks = 1;
}

unsigned int code_block(uint64_t pc)
{
	unsigned int place = (unsigned int)(pc * 0x9e3779b97f4a7c15u >> 40) % PLACES;
	unsigned int block;

	pthread_mutex_lock(&lock);
	while (places[place] && pcs[places[place]] != pc)
		place = (place + 1) % PLACES;
	block = places[place];
	if (!block && nblocks < CODE_BLOCKS) {
		block = nblocks++;
		pcs[block] = pc;
		places[place] = block;
		/* In the phase before, another block had this number. */
		for (unsigned int c = 0; c < MAX_VCPUS; c++) {
			if (counted[c])
				counted[c]->block[block] = 0;
		}
	}
	pthread_mutex_unlock(&lock);
	return block;
}

void code_count(unsigned int c, struct code_counters *counters)
{
	counted[c] = counters;
}

void code_forget(unsigned int c)
{
	if (counted[c])
		memset(counted[c]->block, 0, nblocks * sizeof(*counted[c]->block));
}

void code_add(unsigned int c)
{
	for (unsigned int block = 0; counted[c] && block < nblocks; block++)
		sums[block] += counted[c]->block[block];
}

void code_print(FILE *file)
{
	unsigned int printed = 0;

	fprintf(file, "\"code\":[");
	for (unsigned int block = 0; block < nblocks; block++) {
		if (sums[block])
			fprintf(file, "%s[\"0x%" PRIx64 "\",%" PRIu64 "]", printed++ ? "," : "",
				block ? pcs[block] : 0, sums[block]);
	}
	fprintf(file, "]");
}
