// SPDX-License-Identifier: GPL-2.0-only
/*
 * A domain's inodes in shards, each with a lock of its own, so that CPUs that share a domain do not
 * share one lock for its inodes. Each CPU takes new inodes from a region of its own as long as that
 * has some; in its own lane a CPU's region begins where the domain's inodes do.
 */
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/slab.h>

#include "inode/inode.h"

/* The first inode of the region where this CPU looks first. */
static u64 lanefs_inode_region(const struct lanefs_domain *domain, unsigned int cpu)
{
	unsigned int lane = domain->d_id % nr_cpu_ids;
	unsigned int part = cpu >= lane ? cpu - lane : cpu + nr_cpu_ids - lane;
	u64 runs = div_u64(domain->d_sbi->s_domain_inodes, LANEFS_SHARD_RUN);

	return max_t(u64, div_u64(runs * part, nr_cpu_ids) * LANEFS_SHARD_RUN, LANEFS_FIRST_INDEX);
}

/**
 * lanefs_shards_start() - make the shards of a domain's inodes, and give each CPU its region
 * @domain: the domain
 *
 * Context: At the mount.
 * Return: 0 or -ENOMEM.
 */
int lanefs_shards_start(struct lanefs_domain *domain)
{
	unsigned int shards = min_t(unsigned int, roundup_pow_of_two(nr_cpu_ids),
				    LANEFS_MAX_SHARDS), i;
	struct lanefs_slot *slot;
	int cpu;

	BUILD_BUG_ON(LANEFS_BITMAP_BITS % BITS_PER_LONG || LANEFS_SHARD_RUN % BITS_PER_LONG);
	domain->d_shards = kvcalloc(shards, sizeof(*domain->d_shards), GFP_KERNEL);
	if (!domain->d_shards)
		return -ENOMEM;
	domain->d_shard_bits = ilog2(shards);
	for (i = 0; i < shards; i++) {
		mutex_init(&domain->d_shards[i].sh_mutex);
		xa_init(&domain->d_shards[i].sh_inodes);
	}
	for_each_possible_cpu(cpu) {
		slot = per_cpu_ptr(domain->d_slots, cpu);
		slot->s_inode_first = lanefs_inode_region(domain, cpu);
		slot->s_inode_hint = slot->s_inode_first;
	}
	return 0;
}

/**
 * lanefs_shards_stop() - free the shards of a domain, if there are any
 * @domain: the domain
 *
 * Context: When all inodes have left memory.
 */
void lanefs_shards_stop(struct lanefs_domain *domain)
{
	unsigned int i;

	for (i = 0; domain->d_shards && i < lanefs_shards(domain); i++)
		WARN_ON(!xa_empty(&domain->d_shards[i].sh_inodes));
	kvfree(domain->d_shards);
}

unsigned int lanefs_shards(const struct lanefs_domain *domain)
{
	return 1U << domain->d_shard_bits;
}

struct lanefs_shard *lanefs_shard_of(const struct lanefs_domain *domain, u64 index)
{
	u64 run = div_u64(index, LANEFS_SHARD_RUN);

	return &domain->d_shards[domain->d_shard_bits ? hash_64(run, domain->d_shard_bits) : 0];
}
