/* SPDX-License-Identifier: GPL-2.0-only */
/* Definitions that the BPF program (locks.bpf.c) and its loader (main.c) share. Times in ns. */
#ifndef FSCALE_WAITS_H
#define FSCALE_WAITS_H

#define COMM "fscale-run" /* a worker's name while it executes operations: fscale/model/load.py */
#define FRAMES 14 /* of a stack; two or three are of the tracepoint */
#define NAME 32 /* of a slab cache */
#define SETTINGS ".rodata.settings"
#define STATE ".bss.state"
#define WAITS "contention_" /* prefix of the programs that sample waits */
#define MAP_KEYS 65536 /* fscale/model/maps.py */

/* Powers of two. More CPUs or threads share slots, which costs some of their waits. */
#define CPUS 1024
#define THREADS 4096

/* Where the kernel's memory is: fscale/runner/profilers/memory.py, in this order. */
struct memory {
	unsigned long long direct_map; /* 0: unknown */
	unsigned long long page_array;
	unsigned int page_bits, page_size, compound_head;
	unsigned int slab_mask, slab_value, slab_word, slab_cache;
	unsigned int cache_name, cache_size;
};

/* Settings of the profile; constant once the program is loaded. */
struct settings {
	unsigned int pid; /* the parent of workers; 0: workers of any */
	unsigned int cores; /* of an application */
	unsigned long long cgroup; /* of an application, by its number; 0: workers bear COMM */
	unsigned int spin_bits, sleep_bits;
	/*
	 * Where CPUs spin for more than so many percent of one CPU's time, waits are sampled for
	 * so long, and then not for so long; a pause of 0: always.
	 */
	unsigned int most_spun, turn_ms, pause_ms;
	struct memory memory;
};

/*
 * The one wait of a CPU that spins, or of a thread that sleeps; a line each. `lock` 0: none.
 * For a CPU that spins also the lock that it waited for last, how rarely it takes that, and for
 * how long it has spun in all.
 */
struct slot {
	unsigned long long lock, timestamp;
	unsigned int thread;
	int stack_id;
	unsigned char flags, exponent, kernel;
	unsigned char last_exponent;
	unsigned int random;
	unsigned long long last, spun;
} __attribute__((aligned(64)));

/*
 * State that the loader reads and writes while the program runs. `clock` tells for how long waits were
 * sampled: while they are, since when, less all turns before; else all turns, and PAUSED.
 */
#define PAUSED (1ULL << 63)

struct state {
	struct slot spinning[CPUS], sleeping[THREADS];
	unsigned long long clock;
};

/* Waits of one lock at one place, each of which stands for 2 to the power of `exponent`. */
struct wait_key {
	unsigned long long lock;
	int stack_id; /* in `stacks`; negative: there was no room */
	unsigned char flags; /* of lock:contention_begin */
	unsigned char exponent;
	unsigned char bucket; /* they lasted from 2 to the power of this on */
	unsigned char unused;
};

struct wait_sum {
	unsigned long long count, total, longest;
};

/* A lock that was contended: how many of its waits were sampled, and the slab object it is in. */
struct lock {
	unsigned long long sampled;
	unsigned long long page; /* 0: not looked for */
	unsigned long long cache; /* 0: in none */
	unsigned int cache_size;
	char cache_name[NAME];
};

struct totals {
	/* As perf_event_open(2) has it: of all workers' windows; of these, while waits were sampled. */
	unsigned long long time_enabled, time_running;
	unsigned long long lost; /* waits that found no room in a map */
};

struct thread_name {
	char comm[16];
};

#endif
