// SPDX-License-Identifier: GPL-2.0-only
/* The checksum and the directory hash against values from their specifications. */
#include <stdlib.h>

#include "core/crc.h"
#include "core/namehash.h"
#include "../../tests/check.h"

/* The definition, bit by bit. */
static u32 slow_crc32c(u32 crc, const u8 *p, size_t size)
{
	while (size--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return crc;
}

static void test_crc(void)
{
	u8 buffer[67];

	/* RFC 3720, appendix B.4, and the check value of the CRC catalogue. */
	CHECK_EQUAL(~lanefs_crc32c(~0u, "123456789", 9), 0xe3069283u);
	memset(buffer, 0, 32);
	CHECK_EQUAL(~lanefs_crc32c(~0u, buffer, 32), 0x8a9136aau);
	memset(buffer, 0xff, 32);
	CHECK_EQUAL(~lanefs_crc32c(~0u, buffer, 32), 0x62a8ab43u);

	for (size_t i = 0; i < sizeof(buffer); i++)
		buffer[i] = (u8)(i * 37 + 11);
	for (size_t from = 0; from < 9; from++)
		for (size_t size = 0; from + size <= sizeof(buffer); size++)
			CHECK_EQUAL(lanefs_crc32c(0x12345678, buffer + from, size),
				    slow_crc32c(0x12345678, buffer + from, size));
}

static void test_siphash(void)
{
	/* Appendix A of the paper, and the first vectors of its reference: key 00..0f, data 00.. */
	static const struct {
		size_t size;
		u64 hash;
	} known[] = {
		{ 0, 0x726fdb47dd0e0e31 },
		{ 1, 0x74f839c593dc67fd },
		{ 8, 0x93f5f5799a932462 },
		{ 15, 0xa129ca6149be45e5 },
	};
	struct lanefs_hash_key key = { { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };
	u8 data[16];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (u8)i;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		CHECK_EQUAL(lanefs_siphash(&key, data, known[i].size), known[i].hash);
}

int main(void)
{
	test_crc();
	test_siphash();
	return 0;
}
