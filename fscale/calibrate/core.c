// SPDX-License-Identifier: GPL-2.0-only
#include "core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "median.h"
#include "team.h"

#define ROUNDS 21
#define REPEATED 2000
#define MEMORY_BYTES (512u << 20)	/* more than a last-level cache */
#define MEMORY_STEPS 100000
#define ROTATIONS 64
#define STRING_BYTES 4096
#define WAKES 2000

struct alone {
	struct core *core;
	int ping[2], pong[2];
	const char *failed;
	double rounds[ROUNDS];
	char from[STRING_BYTES], to[STRING_BYTES];
	atomic_ulong word;
};

struct clock {
	double *cycles;
};

static void compute(struct alone *alone)
{
	uint64_t x = 1;

	(void)alone;
	for (unsigned int i = 0; i < REPEATED; i++) {
		/* No loop: a taken branch may cost a cycle of its own. */
#define ROTATE x = x << 7 | x >> 57; __asm__ volatile("" : "+r"(x));
#define ROTATE_8 ROTATE ROTATE ROTATE ROTATE ROTATE ROTATE ROTATE ROTATE
		ROTATE_8 ROTATE_8 ROTATE_8 ROTATE_8 ROTATE_8 ROTATE_8 ROTATE_8 ROTATE_8
	}
}

static void add(struct alone *alone)
{
	for (unsigned int i = 0; i < REPEATED; i++)
		atomic_fetch_add(&alone->word, 1);
}

static void relax(struct alone *alone)
{
	(void)alone;
	for (unsigned int i = 0; i < REPEATED; i++) {
#if defined(__x86_64__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ volatile("yield");
#endif
	}
}

static void copy(struct alone *alone)
{
	for (unsigned int i = 0; i < REPEATED; i++) {
#if defined(__x86_64__)
		void *from = alone->from, *to = alone->to;
		size_t left = STRING_BYTES;

		__asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(left) : : "memory");
#else
		memcpy(alone->to, alone->from, STRING_BYTES);
		__asm__ volatile("" : : : "memory");
#endif
	}
}

/* Nanoseconds of one of the REPEATED. */
static double timed(struct alone *alone, void (*work)(struct alone *alone))
{
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t before = now_ns();

		work(alone);
		alone->rounds[round] = (double)(now_ns() - before) / REPEATED;
	}
	return median(alone->rounds, ROUNDS);
}

/* A cycle through memory that visits each line's neighbour last. */
static double memory(struct alone *alone)
{
	const size_t lines = MEMORY_BYTES / APART;
	char *bytes = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t random = 88172645463325252u, before;
	size_t at = 0;
	double each;

	if (bytes == MAP_FAILED) {
		alone->failed = "mmap";
		return NAN;
	}
	/* Where there are none, TLB misses are counted with it. */
	madvise(bytes, MEMORY_BYTES, MADV_HUGEPAGE);
	/* Sattolo's shuffle makes one cycle of all lines. */
	for (size_t i = 0; i < lines; i++)
		*(size_t *)(bytes + i * APART) = i;
	for (size_t i = lines - 1; i; i--) {
		size_t other, *mine = (size_t *)(bytes + i * APART), kept = *mine;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		other = random % i;
		*mine = *(size_t *)(bytes + other * APART);
		*(size_t *)(bytes + other * APART) = kept;
	}
	before = now_ns();
	for (unsigned int i = 0; i < MEMORY_STEPS; i++)
		at = *(volatile size_t *)(bytes + at * APART);
	each = (double)(now_ns() - before) / MEMORY_STEPS;
	munmap(bytes, MEMORY_BYTES);
	return each;
}

static void pass(struct alone *alone, int fd, bool out)
{
	char token = 0;

	if ((out ? write(fd, &token, 1) : read(fd, &token, 1)) != 1)
		alone->failed = out ? "write" : "read";
}

static void wakes(struct alone *alone)
{
	for (unsigned int i = 0; i < WAKES; i++) {
		pass(alone, alone->ping[1], true);
		pass(alone, alone->pong[0], false);
	}
}

static void measure(struct member *m)
{
	struct alone *alone = m->context;
	uint64_t before;

	if (m->id) {
		for (unsigned int i = 0; i < WAKES; i++) {
			pass(alone, alone->ping[0], false);
			pass(alone, alone->pong[1], true);
		}
		return;
	}
	before = now_ns();
	wakes(alone);
	*alone->core = (struct core){
		.wake = (double)(now_ns() - before) / WAKES / 2,
		.cycle = timed(alone, compute) / ROTATIONS,
		.add = timed(alone, add),
		.relax = timed(alone, relax),
		.string = STRING_BYTES / timed(alone, copy),
		.memory = memory(alone),
	};
}

int core_measure(int cpu, int other, struct core *core, const char **call)
{
	const int cpus[] = { cpu, other };
	struct alone alone = { .core = core };
	int result;

	*call = "pipe";
	if (pipe(alone.ping))
		return -1;
	if (pipe(alone.pong)) {
		close(alone.ping[0]);
		close(alone.ping[1]);
		return -1;
	}
	result = team_run(cpus, 2, measure, &alone, call);
	for (unsigned int end = 0; end < 2; end++) {
		close(alone.ping[end]);
		close(alone.pong[end]);
	}
	if (!result && alone.failed) {
		*call = alone.failed;
		return -1;
	}
	return result;
}

static void all_compute(struct member *m)
{
	struct clock *clock = m->context;
	struct alone alone = { 0 };
	uint64_t begun = now_ns();
	double each;

	/* The clock of a chip follows its load within milliseconds. */
	do {
		each = timed(&alone, compute) / ROTATIONS;
	} while (now_ns() - begun < 100000000u);
	clock->cycles[m->id] = each;
	team_meet(m);
}

int core_clock(const int *cpus, unsigned int count, double *cycle, const char **call)
{
	struct clock clock = { .cycles = calloc(count, sizeof(double)) };

	*cycle = NAN;
	*call = "calloc";
	if (!clock.cycles)
		return -1;
	if (team_run(cpus, count, all_compute, &clock, call))
		return -1; /* threads that were started use it still */
	*cycle = median(clock.cycles, count);
	free(clock.cycles);
	return 0;
}
