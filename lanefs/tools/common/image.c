// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "image.h"

/* Open addressing, linear probing, never more than half full. */
struct overlay_slot {
	uint64_t block;
	void *data;		/* NULL: a free slot */
};

int image_open(struct image *image, const char *path, bool write, size_t block_size)
{
	int error;

	memset(image, 0, sizeof(*image));
	error = device_open(&image->device, path, write);
	if (error)
		return error;
	image->block_size = block_size;
	image->blocks = image->device.size / block_size;
	return 0;
}

static struct overlay_slot *find_slot(const struct image *image, uint64_t block)
{
	size_t mask = image->slot_count - 1;
	size_t i = (size_t)(block * 0x9e3779b97f4a7c15 >> 32) & mask;

	while (image->slots[i].data && image->slots[i].block != block)
		i = (i + 1) & mask;
	return &image->slots[i];
}

static void grow(struct image *image)
{
	struct overlay_slot *old = image->slots;
	size_t count = image->slot_count;

	image->slot_count = count ? 2 * count : 64;
	image->slots = allocate(image->slot_count, sizeof(*image->slots));
	for (size_t i = 0; i < count; i++)
		if (old[i].data)
			*find_slot(image, old[i].block) = old[i];
	free(old);
}

int image_read(struct image *image, uint64_t block, void *data)
{
	if (block >= image->blocks)
		return -ERANGE;
	if (image->changed) {
		struct overlay_slot *slot = find_slot(image, block);

		if (slot->data) {
			memcpy(data, slot->data, image->block_size);
			return 0;
		}
	}
	return device_read(&image->device, data, image->block_size, block * image->block_size);
}

int image_read_run(struct image *image, uint64_t block, size_t count, void *data)
{
	int error;

	if (block >= image->blocks || count > image->blocks - block)
		return -ERANGE;
	error = device_read(&image->device, data, count * image->block_size,
			    block * image->block_size);
	for (size_t i = 0; i < count && image->changed && !error; i++) {
		struct overlay_slot *slot = find_slot(image, block + i);

		if (slot->data)
			memcpy((char *)data + i * image->block_size, slot->data,
			       image->block_size);
	}
	return error;
}

int image_write(struct image *image, uint64_t block, const void *data)
{
	struct overlay_slot *slot;

	if (block >= image->blocks)
		return -ERANGE;
	if (2 * (image->changed + 1) > image->slot_count)
		grow(image);
	slot = find_slot(image, block);
	if (!slot->data) {
		slot->block = block;
		slot->data = allocate(1, image->block_size);
		image->changed++;
	}
	memcpy(slot->data, data, image->block_size);
	return 0;
}

int image_write_now(struct image *image, uint64_t block, const void *data)
{
	int error = image_write(image, block, data);

	if (!error)
		error = device_write(&image->device, data, image->block_size,
				     block * image->block_size);
	return error ? error : device_sync(&image->device);
}

static int by_block(const void *a, const void *b)
{
	const struct overlay_slot *x = a, *y = b;

	return x->block < y->block ? -1 : x->block > y->block;
}

static void forget_changes(struct image *image)
{
	for (size_t i = 0; i < image->slot_count; i++)
		free(image->slots[i].data);
	free(image->slots);
	image->slots = NULL;
	image->slot_count = image->changed = 0;
}

int image_commit(struct image *image)
{
	struct overlay_slot *sorted;
	size_t count = 0;
	int error = 0;

	if (!image->changed)
		return 0;
	sorted = allocate(image->changed, sizeof(*sorted));
	for (size_t i = 0; i < image->slot_count; i++)
		if (image->slots[i].data)
			sorted[count++] = image->slots[i];
	qsort(sorted, count, sizeof(*sorted), by_block);
	for (size_t i = 0; i < count && !error; i++)
		error = device_write(&image->device, sorted[i].data, image->block_size,
				     sorted[i].block * image->block_size);
	free(sorted);
	if (!error)
		error = device_sync(&image->device);
	if (!error)
		forget_changes(image);
	return error;
}

void image_close(struct image *image)
{
	forget_changes(image);
	device_close(&image->device);
}
