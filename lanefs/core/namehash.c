// SPDX-License-Identifier: GPL-2.0-only
/* SipHash-2-4 for user space, after the paper's section 2. The module uses the kernel's. */
#include "namehash.h"

struct state {
	u64 v0, v1, v2, v3;
};

static u64 rotate(u64 x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(struct state *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = rotate(s->v1, 13) ^ s->v0;
	s->v3 = rotate(s->v3, 16) ^ s->v2;
	s->v0 = rotate(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = rotate(s->v1, 17) ^ s->v2;
	s->v3 = rotate(s->v3, 21) ^ s->v0;
	s->v2 = rotate(s->v2, 32);
}

static void compress(struct state *s, u64 word)
{
	s->v3 ^= word;
	sip_round(s);
	sip_round(s);
	s->v0 ^= word;
}

u64 lanefs_siphash(const struct lanefs_hash_key *key, const void *data, size_t size)
{
	struct state s = {
		.v0 = key->word[0] ^ 0x736f6d6570736575,
		.v1 = key->word[1] ^ 0x646f72616e646f6d,
		.v2 = key->word[0] ^ 0x6c7967656e657261,
		.v3 = key->word[1] ^ 0x7465646279746573,
	};
	const u8 *p = data;
	size_t left;
	u64 word;

	for (left = size; left >= 8; left -= 8, p += 8) {
		memcpy(&word, p, 8);
		compress(&s, le64_to_cpu(word));
	}
	word = (u64)size << 56;
	for (size_t i = 0; i < left; i++)
		word |= (u64)p[i] << 8 * i;
	compress(&s, word);
	s.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
