// SPDX-License-Identifier: GPL-2.0-only
#include "chain.h"

void chain_build(struct chain *chain)
{
	unsigned int order[CHAIN_LINES];
	uint32_t random = 2463534242u;

	for (unsigned int i = 0; i < CHAIN_LINES; i++)
		order[i] = i;
	for (unsigned int i = CHAIN_LINES - 1; i; i--) {
		unsigned int other, kept = order[i];

		random ^= random << 13;
		random ^= random >> 17;
		random ^= random << 5;
		other = random % (i + 1);
		order[i] = order[other];
		order[other] = kept;
	}
	for (unsigned int i = 0; i < CHAIN_LINES; i++)
		atomic_store(&chain->links[order[i]].next,
			     &chain->links[order[(i + 1) % CHAIN_LINES]]);
}

void chain_read(struct chain *chain)
{
	struct link *at = chain->links;

	for (unsigned int i = 0; i < CHAIN_LINES; i++)
		at = atomic_load_explicit(&at->next, memory_order_relaxed);
	__asm__ volatile("" : : "r"(at));
}

void chain_add(struct chain *chain)
{
	uintptr_t at = (uintptr_t)chain->links;

	/* The address of the next line is what was there: an addition of zero keeps the chain. */
	for (unsigned int i = 0; i < CHAIN_LINES; i++)
		at = atomic_fetch_add((_Atomic uintptr_t *)at, 0);
	__asm__ volatile("" : : "r"(at));
}

void chain_own(struct chain *chain)
{
	for (unsigned int i = 0; i < CHAIN_LINES; i++) {
		struct link *next = atomic_load_explicit(&chain->links[i].next, memory_order_relaxed);

		atomic_store_explicit(&chain->links[i].next, next, memory_order_release);
	}
}
