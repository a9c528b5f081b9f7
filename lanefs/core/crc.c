// SPDX-License-Identifier: GPL-2.0-only
/* CRC32C for user space, eight bytes a step ("slicing by 8"). The module uses the kernel's. */
#include <pthread.h>

#include "crc.h"

#define POLYNOMIAL 0x82f63b78u
#define SLICES 8

/* table[k][b]: the CRC of byte b followed by k zero bytes. */
static u32 table[SLICES][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
	for (u32 byte = 0; byte < 256; byte++) {
		u32 crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		table[0][byte] = crc;
	}
	for (int k = 1; k < SLICES; k++)
		for (u32 byte = 0; byte < 256; byte++)
			table[k][byte] = table[k - 1][byte] >> 8 ^ table[0][table[k - 1][byte] & 0xff];
}

u32 lanefs_crc32c(u32 crc, const void *data, size_t size)
{
	const u8 *p = data;

	pthread_once(&table_once, fill_table);
	for (; size >= SLICES; size -= SLICES, p += SLICES) {
		u32 low, high;

		memcpy(&low, p, sizeof(low));
		memcpy(&high, p + 4, sizeof(high));
		low = crc ^ le32_to_cpu(low);
		high = le32_to_cpu(high);
		crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^
		      table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^
		      table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^
		      table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
	}
	while (size--)
		crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xff];
	return crc;
}
