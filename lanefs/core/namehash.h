/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_CORE_NAMEHASH_H
#define LANEFS_CORE_NAMEHASH_H

#include "shim.h"

/* The key of a file system's directory hash: its uuid would be known to an attacker, this is not. */
struct lanefs_hash_key {
	u64 word[2];
};

#ifdef __KERNEL__

#include <linux/siphash.h>

static inline u64 lanefs_siphash(const struct lanefs_hash_key *key, const void *data, size_t size)
{
	siphash_key_t k = { .key = { key->word[0], key->word[1] } };

	return siphash(data, size, &k);
}

#else

/* SipHash-2-4 (Aumasson, Bernstein, INDOCRYPT 2012) of @size bytes: the kernel's siphash(). */
u64 lanefs_siphash(const struct lanefs_hash_key *key, const void *data, size_t size);

#endif

#endif
