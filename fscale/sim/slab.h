/* SPDX-License-Identifier: GPL-2.0-only */
/* Which object of a slab a kernel address lies in, as the guest's own page array tells it. */
#ifndef FSCALE_SIM_SLAB_H
#define FSCALE_SIM_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLAB_NAME 32

/*
 * Where the guest's kernel keeps what, in bytes, in the order of KernelMemory in
 * fscale/runner/profilers/memory.py. A page is one of a slab when the 32-bit word at slab_word of its
 * struct page, masked, is slab_value.
 */
#define SLAB_LAYOUT(X)						\
	X(direct_map) X(page_array) X(page_bits) X(page_size)	\
	X(compound_head) X(slab_mask) X(slab_value) X(slab_word) \
	X(slab_cache) X(cache_name) X(cache_size)

struct slab_layout {
#define FIELD(name) uint64_t name;
	SLAB_LAYOUT(FIELD)
#undef FIELD
};

struct slab_object {
	char cache[SLAB_NAME];
	uint64_t start, size;
};

/* Reads the guest's memory at a kernel address; false where there is none. */
typedef bool (*slab_read_t)(uint64_t address, void *to, size_t size);

/* Read all numbers of a layout, with colons between; false where the text is none. */
bool slab_parse(struct slab_layout *layout, const char *text);

/* From now on objects are found; before it, or with no layout, none is. */
void slab_open(const struct slab_layout *layout, slab_read_t read);

/* False where the address is not in an object of a slab. */
bool slab_find(uint64_t address, struct slab_object *object);

#endif
