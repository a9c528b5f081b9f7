// SPDX-License-Identifier: GPL-2.0-only
#include "slab.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIRECT_MAP_BYTES (1ull << 46)
/* No page array lies so near the end of the address space, and no compound page is as large. */
#define MASKS_FROM (-(1ull << 30))

static const struct slab_layout *layout;
static slab_read_t read_guest;

bool slab_parse(struct slab_layout *found, const char *text)
{
	uint64_t *const fields[] = {
#define ADDRESS(name) &found->name,
		SLAB_LAYOUT(ADDRESS)
#undef ADDRESS
	};
	const size_t count = sizeof(fields) / sizeof(*fields);

	for (size_t i = 0; i < count; i++) {
		char *end;

		if (!isdigit((unsigned char)*text))
			return false;
		errno = 0;
		*fields[i] = strtoull(text, &end, 0);
		if (errno || *end != (i + 1 < count ? ':' : '\0'))
			return false;
		text = end + 1;
	}
	return found->page_size && found->page_bits < 32;
}

void slab_open(const struct slab_layout *found, slab_read_t read)
{
	layout = found;
	read_guest = read;
}

static bool word(uint64_t address, uint64_t *value)
{
	return read_guest(address, value, sizeof(*value));
}

/*
 * The page that an object begins in: of a compound page the first. A page that is not the first has
 * an odd number, which is the first page's address, and since 7.1 a mask that makes it of its own.
 */
static bool head_of(uint64_t address, uint64_t *page)
{
	uint64_t frame = (address - layout->direct_map) >> layout->page_bits, head;

	*page = layout->page_array + frame * layout->page_size;
	if (!word(*page + layout->compound_head, &head))
		return false;
	if (head & 1)
		*page = head >= MASKS_FROM ? *page & head : head - 1;
	return true;
}

bool slab_find(uint64_t address, struct slab_object *object)
{
	uint64_t page, cache, name, first;
	uint32_t kind, size;

	if (!layout || address - layout->direct_map >= DIRECT_MAP_BYTES)
		return false;
	if (!head_of(address, &page) ||
	    !read_guest(page + layout->slab_word, &kind, sizeof(kind)) ||
	    (kind & layout->slab_mask) != layout->slab_value ||
	    !word(page + layout->slab_cache, &cache) || !word(cache + layout->cache_name, &name) ||
	    !read_guest(cache + layout->cache_size, &size, sizeof(size)) || !size)
		return false;
	memset(object, 0, sizeof(*object));
	for (size_t i = 0; i < SLAB_NAME - 1; i++) {
		if (!read_guest(name + i, &object->cache[i], 1))
			return false;
		if (!object->cache[i])
			break;
		/* The name is printed in JSON. */
		if (!isalnum((unsigned char)object->cache[i]) && !strchr("_-.:()", object->cache[i]))
			object->cache[i] = '?';
	}
	first = layout->direct_map +
		((page - layout->page_array) / layout->page_size << layout->page_bits);
	object->start = address - (address - first) % size;
	object->size = size;
	return object->cache[0] && address >= first;
}
