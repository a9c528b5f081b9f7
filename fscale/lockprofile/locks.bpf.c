// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lock profile: waits between lock:contention_begin and contention_end.
 *
 * contention_end runs with the lock held and lengthens what all others wait for. So it finds out
 * with a few loads whether its wait is sampled, and of those it does no more than
 * add up: stack, name and all else is found when the wait begins.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "waits.h"

/* Of include/trace/events/lock.h. */
#define LCB_F_SPIN (1U << 0)
#define LCB_F_MUTEX (1U << 5)
#define PF_KTHREAD 0x00200000

/* A wait that is noted and not sampled: see contention_begin. */
#define NOT_SAMPLED 255
#define MOST_EXPONENT 31
/* An interrupt at the very end of contention_end may miss the end of its own wait. */
#define STALE_NS 1000000000ULL

char LICENSE[] SEC("license") = "GPL";

const volatile struct settings settings SEC(SETTINGS);

struct instant {
	__u64 time;
	__u64 time_running; /* for so long waits were sampled until then */
};

struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	char comm[16];
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAP_KEYS);
	__type(key, __u64);
	__type(value, struct lock);
} locks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAP_KEYS);
	__type(key, struct wait_key);
	__type(value, struct wait_sum);
} waits SEC(".maps");

/* Kernel threads' waits, scaled. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct thread_name);
	__type(value, struct wait_sum);
} others SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, MAP_KEYS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, FRAMES * sizeof(__u64));
} stacks SEC(".maps");

/* Workers in their window, by thread. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct instant);
} working SEC(".maps");

struct state state SEC(STATE);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct totals);
} totals SEC(".maps");

struct instant window; /* the window of an application began; 0: not now */
__u32 opener; /* the thread that opened it */

static struct instant instant(void)
{
	__u64 now = bpf_ktime_get_ns(), clock = state.clock;

	return (struct instant){ now, clock & PAUSED ? clock & ~PAUSED : now - clock };
}

/* `times` windows that began at `since` end. */
static void add_windows(struct instant since, __u64 times)
{
	struct totals *all = bpf_map_lookup_elem(&totals, &(__u32){ 0 });
	struct instant now = instant();

	if (!all)
		return;
	__sync_fetch_and_add(&all->time_enabled, times * (now.time - since.time));
	__sync_fetch_and_add(&all->time_running, times * (now.time_running - since.time_running));
}

static void count_lost(void)
{
	struct totals *all = bpf_map_lookup_elem(&totals, &(__u32){ 0 });

	if (all)
		__sync_fetch_and_add(&all->lost, 1);
}

static bool is_comm(const char *name)
{
	for (int i = 0; i < (int)sizeof(COMM); i++)
		if (name[i] != COMM[i])
			return false;
	return true;
}

static bool in_window(const struct task_struct *task)
{
	if (settings.cgroup)
		return window.time && bpf_get_current_cgroup_id() == settings.cgroup;
	return is_comm(task->comm) &&
	       (!settings.pid || (__u32)task->real_parent->tgid == settings.pid);
}

/*
 * Of a page that is not the first of a compound one: the first, as an address or, since 7.1, as a
 * mask for its own. No page array lies so near the end of the address space that they are alike.
 */
static __u64 head_of(__u64 page, __u64 head)
{
	return head >= -(1ull << 30) ? page & head : head - 1;
}

/* The slab cache of the object that the lock lies in. */
static void find_place(struct lock *l, __u64 lock)
{
	const volatile struct memory *m = &settings.memory;
	__u64 page, head = 0, name = 0;
	__u32 word = 0;

	if (!m->direct_map)
		return;
	page = m->page_array + ((__s64)(lock - m->direct_map) >> m->page_bits) * m->page_size;
	bpf_probe_read_kernel(&head, sizeof(head), (void *)(page + m->compound_head));
	if (head & 1)
		page = head_of(page, head);
	l->page = page;
	bpf_probe_read_kernel(&word, sizeof(word), (void *)(page + m->slab_word));
	if ((__s64)lock < (__s64)m->direct_map || (word & m->slab_mask) != m->slab_value)
		return;
	bpf_probe_read_kernel(&l->cache, sizeof(l->cache), (void *)(page + m->slab_cache));
	bpf_probe_read_kernel(&l->cache_size, sizeof(l->cache_size),
			      (void *)(l->cache + m->cache_size));
	bpf_probe_read_kernel(&name, sizeof(name), (void *)(l->cache + m->cache_name));
	bpf_probe_read_kernel_str(l->cache_name, sizeof(l->cache_name), (void *)name);
}

static struct lock *new_lock(__u64 lock)
{
	struct lock fresh = {};

	find_place(&fresh, lock);
	bpf_map_update_elem(&locks, &lock, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&locks, &lock);
}

static bool spins(__u32 flags)
{
	return (flags & (LCB_F_SPIN | LCB_F_MUTEX)) == LCB_F_SPIN;
}

static struct slot *slot_of(bool spin, __u32 thread)
{
	return spin ? &state.spinning[bpf_get_smp_processor_id() & (CPUS - 1)] :
		      &state.sleeping[thread & (THREADS - 1)];
}

/*
 * Of each lock the first waits are sampled (2 to the power of spin_bits or sleep_bits), then one in
 * two until there are as many again, then one in four, and so on. A wait is chosen by chance,
 * because threads that take two locks in turn would show one of them alone to a counter.
 *
 * A mutex has more of these in one wait. That the first was not sampled is noted as well, else the
 * others would be more chances.
 */
static bool is_sampled(struct slot *s, __u64 exponent)
{
	return !(s->random >> 1 >> (31 - (exponent & 31)));
}

static __u64 exponent_of(const struct lock *l, __u32 bits)
{
	__u64 exponent = l ? l->sampled >> bits : 0;

	return exponent < MOST_EXPONENT ? exponent : MOST_EXPONENT;
}

/* Note a wait for `lock` of the thread that runs, if it is to be sampled. */
static void record_begin(__u64 *ctx, struct slot *s, struct lock *l, __u64 exponent)
{
	__u64 lock = ctx[0];
	struct task_struct *task = bpf_get_current_task_btf();
	bool kernel = task->flags & PF_KTHREAD;

	if (kernel ? settings.cgroup && !window.time : !in_window(task))
		return;
	if (exponent != NOT_SAMPLED) {
		l = l ? l : new_lock(lock);
		if (!l) {
			count_lost();
			return;
		}
		__sync_fetch_and_add(&l->sampled, 1);
	}
	s->thread = bpf_get_current_pid_tgid();
	s->flags = ctx[1];
	s->exponent = exponent;
	s->kernel = kernel;
	s->stack_id = kernel || exponent == NOT_SAMPLED ? -1 : bpf_get_stackid(ctx, &stacks, 0);
	s->timestamp = bpf_ktime_get_ns();
	s->lock = lock;
}

/* Most waits end here: of a lock that many CPUs spin for it has to be quick. */
static void begin_spin(__u64 *ctx)
{
	__u64 lock = ctx[0], exponent;
	struct slot *s = slot_of(true, 0);
	struct lock *l;

	/* Numerical Recipes' generator, anew from the kernel's whenever it has chosen a wait. */
	s->random = s->random * 1664525 + 1013904223;
	if (s->last == lock && !is_sampled(s, s->last_exponent))
		return;
	l = bpf_map_lookup_elem(&locks, &lock);
	exponent = exponent_of(l, settings.spin_bits);
	if (s->last != lock) {
		s->last = lock;
		s->last_exponent = exponent;
		if (!is_sampled(s, exponent))
			return;
	} else {
		/* It was chosen with this one. */
		__u64 next = exponent;

		exponent = s->last_exponent;
		s->last_exponent = next;
	}
	s->random = bpf_get_prandom_u32();
	if (s->lock && s->lock != lock && bpf_ktime_get_ns() - s->timestamp < STALE_NS)
		return;
	record_begin(ctx, s, l, exponent);
}

static void begin_sleep(__u64 *ctx)
{
	__u64 lock = ctx[0], exponent;
	struct slot *s = slot_of(false, bpf_get_current_pid_tgid());
	struct lock *l;

	if (s->lock)
		return;
	l = bpf_map_lookup_elem(&locks, &lock);
	exponent = exponent_of(l, settings.sleep_bits);
	s->random = bpf_get_prandom_u32();
	if (!is_sampled(s, exponent)) {
		if (!(ctx[1] & LCB_F_MUTEX))
			return;
		exponent = NOT_SAMPLED;
	}
	record_begin(ctx, s, l, exponent);
}

SEC("tp_btf/contention_begin")
int contention_begin(__u64 *ctx)
{
	if (spins(ctx[1]))
		begin_spin(ctx);
	else
		begin_sleep(ctx);
	return 0;
}

static void add(void *map, const void *key, __u64 times, __u64 wait)
{
	struct wait_sum none = {}, *sum = bpf_map_lookup_elem(map, key);

	if (!sum) {
		bpf_map_update_elem(map, key, &none, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(map, key);
	}
	if (!sum) {
		count_lost();
		return;
	}
	__sync_fetch_and_add(&sum->count, times);
	__sync_fetch_and_add(&sum->total, times * wait);
	if (wait > sum->longest)
		sum->longest = wait;
}

static __u8 log2_of(__u64 n)
{
	__u8 log = 0;

	for (int bits = 32; bits; bits >>= 1)
		if (n >> bits) {
			n >>= bits;
			log += bits;
		}
	return log;
}

SEC("tp_btf/contention_end")
int contention_end(__u64 *ctx)
{
	__u64 lock = ctx[0], wait;
	__u32 thread = bpf_get_current_pid_tgid();
	struct slot *s = slot_of(true, 0);
	struct thread_name name;
	struct wait_key key;

	if (s->lock != lock)
		s = slot_of(false, thread);
	if (s->lock != lock || s->thread != thread)
		return 0;
	wait = bpf_ktime_get_ns() - s->timestamp;
	if (s->exponent == NOT_SAMPLED) {
		s->lock = 0;
		return 0;
	}
	s->spun += wait << (s->exponent & 63);
	if (s->kernel) {
		bpf_get_current_comm(&name, sizeof(name));
		add(&others, &name, 1ULL << (s->exponent & 63), wait);
	} else {
		key = (struct wait_key){
			.lock = lock,
			.stack_id = s->stack_id,
			.flags = s->flags,
			.exponent = s->exponent,
			.bucket = log2_of(wait),
		};
		add(&waits, &key, 1, wait);
	}
	s->lock = 0; /* an interrupt finds the slot taken until here */
	return 0;
}

/* A worker of the microbenchmark takes COMM for its window, and another name after it. */
static void worker(__u32 thread, bool begins)
{
	struct instant now = instant(), *since = bpf_map_lookup_elem(&working, &thread);

	if (since) {
		add_windows(*since, 1);
		bpf_map_delete_elem(&working, &thread);
	}
	if (begins)
		bpf_map_update_elem(&working, &thread, &now, BPF_ANY);
}

/* An application's own process, in its cgroup, does, and its window is that of all CPUs. */
static void application(__u32 thread, bool begins)
{
	if (begins ? bpf_get_current_cgroup_id() != settings.cgroup : thread != opener)
		return;
	if (window.time)
		add_windows(window, settings.cores);
	window = begins ? instant() : (struct instant){ 0 };
	opener = thread;
}

static void named(struct task_struct *task, bool begins)
{
	if (!settings.cgroup)
		worker(task->pid, begins && (!settings.pid ||
			       (__u32)task->real_parent->tgid == settings.pid));
	else
		application(task->pid, begins);
}

SEC("tp_btf/task_rename")
int task_rename(__u64 *ctx)
{
	char name[16] = {};

	bpf_probe_read_kernel_str(name, sizeof(name), (void *)ctx[1]);
	named((struct task_struct *)ctx[0], is_comm(name));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int sched_process_exit(__u64 *ctx)
{
	named((struct task_struct *)ctx[0], false);
	return 0;
}
