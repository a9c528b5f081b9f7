// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the kernel's memory lies: of every event that tells both a page frame's number and an
 * address, the address that frame 0 would have.
 *
 * The fields of these events have lain there in all kernels that have lock:contention_begin. Were
 * one moved, the events would disagree, and its loader would take none of them.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "memory.h"

char LICENSE[] SEC("license") = "GPL";

const volatile struct memory memory SEC(SETTINGS);

struct mm_page_alloc {
	__u64 common;
	__u64 frame;
};

struct kmalloc {
	__u64 common;
	__u64 caller, address, requested, allocated;
};

struct mm_lru_insertion {
	__u64 common;
	__u64 folio, frame;
};

/* The frame that a thread was given last. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, __u64);
} frames SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, BASES);
	__type(key, struct base);
	__type(value, __u64);
} bases SEC(".maps");

static void count(__u64 kind, __u64 address)
{
	struct base base = { .kind = kind, .address = address };
	__u64 one = 1, *seen;

	if (!bpf_map_update_elem(&bases, &base, &one, BPF_NOEXIST))
		return;
	seen = bpf_map_lookup_elem(&bases, &base);
	if (seen)
		__sync_fetch_and_add(seen, 1);
}

SEC("tracepoint/kmem/mm_page_alloc")
int page_allocated(struct mm_page_alloc *event)
{
	__u64 thread = bpf_get_current_pid_tgid(), frame = event->frame;

	bpf_map_update_elem(&frames, &thread, &frame, BPF_ANY);
	return 0;
}

SEC("tracepoint/kmem/kmalloc")
int object_allocated(struct kmalloc *event)
{
	__u64 thread = bpf_get_current_pid_tgid(), *frame;

	if (event->allocated != (__u64)SLOTS_PAGES << memory.page_bits)
		return 0;
	frame = bpf_map_lookup_elem(&frames, &thread);
	if (frame)
		count(DIRECT_MAP, event->address - (*frame << memory.page_bits));
	return 0;
}

SEC("tracepoint/pagemap/mm_lru_insertion")
int page_listed(struct mm_lru_insertion *event)
{
	count(PAGE_ARRAY, event->folio - event->frame * memory.page_size);
	return 0;
}
