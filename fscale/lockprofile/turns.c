// SPDX-License-Identifier: GPL-2.0-only
/*
 * When waits are sampled: always, or in turns where CPUs spin all the time.
 *
 * Where several CPUs wait for one spinlock, whatever contention_end does is added to each hand-over,
 * an empty program, too. So it is attached for a part of the time there. Such waits are far shorter
 * than a turn; those that begin before it or end after it are not seen. Where CPUs seldom spin, and
 * waits may be long, nothing is missed.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program.h"
#include "turns.h"

#define PROGRAMS 2
#define ENDLESS (-1)

struct turns {
	struct bpf_program *programs[PROGRAMS];
	struct bpf_link *links[PROGRAMS];
	struct state *state;
	uint64_t time_running; /* in all turns before this one, nanoseconds */
	int cpus;
};

static uint64_t now(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t))
		fail("clock_gettime");
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void set_clock(struct turns *t, uint64_t clock)
{
	__atomic_store_n(&t->state->clock, clock, __ATOMIC_RELEASE);
}

static struct bpf_link *attach(struct bpf_program *program)
{
	struct bpf_link *link = bpf_program__attach(program);

	if (!link)
		fail(bpf_program__name(program));
	return link;
}

/* The programs that know windows are attached for good. */
static void open_turns(struct turns *t, struct bpf_object *object)
{
	const int fd = program_map(object, STATE);
	struct bpf_program *program;
	int count = 0;

	t->state = mmap(NULL, sizeof(*t->state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (t->state == MAP_FAILED)
		fail("mmap");
	t->cpus = libbpf_num_possible_cpus();
	if (t->cpus < 0)
		fail("cannot count the possible CPUs");
	if (t->cpus > CPUS)
		t->cpus = CPUS;
	set_clock(t, PAUSED);
	bpf_object__for_each_program(program, object) {
		if (strncmp(bpf_program__name(program), WAITS, strlen(WAITS)))
			attach(program);
		else if (count < PROGRAMS)
			t->programs[count++] = program;
	}
}

static void resume_sampling(struct turns *t)
{
	struct state *state = t->state;

	/* Waits whose end was not seen. */
	for (int i = 0; i < CPUS; i++)
		state->spinning[i].lock = 0;
	for (int i = 0; i < THREADS; i++)
		state->sleeping[i].lock = 0;
	for (int i = 0; i < PROGRAMS; i++)
		t->links[i] = attach(t->programs[i]);
	set_clock(t, now() - t->time_running);
}

static void pause_sampling(struct turns *t)
{
	t->time_running = now() - t->state->clock;
	set_clock(t, t->time_running | PAUSED);
	for (int i = PROGRAMS; i--;)
		if (bpf_link__destroy(t->links[i]))
			fail(bpf_program__name(t->programs[i]));
}

/* For how long all CPUs have spun while waits were sampled, nanoseconds. */
static uint64_t spun(const struct turns *t)
{
	uint64_t sum = 0;

	for (int i = 0; i < t->cpus; i++)
		sum += __atomic_load_n(&t->state->spinning[i].spun, __ATOMIC_RELAXED);
	return sum;
}

static bool ends_within(int pidfd, int milliseconds)
{
	struct pollfd child = { .fd = pidfd, .events = POLLIN };
	const int ready = poll(&child, 1, milliseconds);

	if (ready < 0 && errno != EINTR)
		fail("poll");
	return ready > 0;
}

static pid_t start(char *child)
{
	const pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (!pid) {
		execl(child, child, NULL);
		fail(child);
	}
	return pid;
}

void run_with(struct bpf_object *object, const struct settings *settings, char *child)
{
	const int turn = settings->pause_ms ? (int)settings->turn_ms : ENDLESS;
	struct turns t = { 0 };
	uint64_t before, began;
	int pidfd, status;
	bool ended;
	pid_t pid;

	open_turns(&t, object);
	resume_sampling(&t);
	pid = start(child);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		fail("pidfd_open");
	do {
		before = spun(&t);
		began = now();
		ended = ends_within(pidfd, turn);
		if (ended || 100 * (spun(&t) - before) < settings->most_spun * (now() - began))
			continue;
		pause_sampling(&t);
		ended = ends_within(pidfd, (int)settings->pause_ms);
		resume_sampling(&t);
	} while (!ended);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			fail("waitpid");
	pause_sampling(&t);
	close(pidfd);
}
