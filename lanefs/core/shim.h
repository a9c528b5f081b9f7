/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Definitions that the files of core/ need, so that the same
 * source is part of the module and of the tools and their unit tests.
 */
#ifndef LANEFS_CORE_SHIM_H
#define LANEFS_CORE_SHIM_H

#ifdef __KERNEL__

#include <asm/byteorder.h>
#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sort.h>
#include <linux/string.h>
#include <linux/types.h>

#else

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;	/* printed by %llu on all machines */
typedef __s64 s64;

#define le16_to_cpu(x) le16toh((uint16_t)(x))
#define le32_to_cpu(x) le32toh((uint32_t)(x))
#define le64_to_cpu(x) le64toh((uint64_t)(x))
#define cpu_to_le16(x) ((__le16)htole16(x))
#define cpu_to_le32(x) ((__le32)htole32(x))
#define cpu_to_le64(x) ((__le64)htole64(x))

#define cond_resched() ((void)0)

/* A test that decides who goes on after each access to memory that is shared has this call it. */
#ifndef LANEFS_SHARED_ACCESS
#define LANEFS_SHARED_ACCESS() ((void)0)
#endif

#define READ_ONCE(x) (LANEFS_SHARED_ACCESS(), __atomic_load_n(&(x), __ATOMIC_RELAXED))
#define WRITE_ONCE(x, value) \
	(LANEFS_SHARED_ACCESS(), __atomic_store_n(&(x), value, __ATOMIC_RELAXED))
#define smp_load_acquire(at) (LANEFS_SHARED_ACCESS(), __atomic_load_n(at, __ATOMIC_ACQUIRE))
#define xchg(at, value) (LANEFS_SHARED_ACCESS(), __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST))
#define try_cmpxchg(at, old, new) \
	(LANEFS_SHARED_ACCESS(), __atomic_compare_exchange_n(at, old, new, false, \
							     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))

#endif

static inline void lanefs_sort(void *array, size_t count, size_t size,
			       int (*order)(const void *left, const void *right))
{
#ifdef __KERNEL__
	sort(array, count, size, order, NULL);
#else
	if (count)
		qsort(array, count, size, order);
#endif
}

static inline void le32_add(__le32 *number, u32 by)
{
	*number = cpu_to_le32(le32_to_cpu(*number) + by);
}

#endif
