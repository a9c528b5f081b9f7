// SPDX-License-Identifier: GPL-2.0-only
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "qemu.h"
#include "schedule.h"
#include "statistics.h"

#define NS 1000000000ull
/* How often a line of progress is due, in seconds of the host. */
#define PROGRESS 5

/* dlsym() may find the older version of the function, whose condition variable differs. */
#define CONDITIONS "GLIBC_2.3.2"

static struct {
	int (*clock_gettime)(clockid_t, struct timespec *);
	int (*ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
	int (*wait)(pthread_cond_t *, pthread_mutex_t *);
	int (*broadcast)(pthread_cond_t *);
	int (*signal)(pthread_cond_t *);
} real;

static bool active;
static int event = -1;
/* The time that the main loop (this thread) was told last. */
static _Thread_local uint64_t told;

static void find(void *function, const char *name, const char *version)
{
	void *symbol = version ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);

	memcpy(function, &symbol, sizeof(symbol));
}

/* Other constructors may call before ours has run, so functions are looked up at their first use. */
static void find_all(void)
{
	find(&real.ppoll, "ppoll", NULL);
	find(&real.wait, "pthread_cond_wait", CONDITIONS);
	find(&real.broadcast, "pthread_cond_broadcast", CONDITIONS);
	find(&real.signal, "pthread_cond_signal", CONDITIONS);
	find(&real.clock_gettime, "clock_gettime", NULL);
}

#define REAL(name) (real.name ? real.name : (find_all(), real.name))

static uint64_t ns_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * NS + (uint64_t)t->tv_nsec;
}

static uint64_t host_time(void)
{
	struct timespec t;

	REAL(clock_gettime)(CLOCK_MONOTONIC, &t);
	return ns_of(&t);
}

bool shim_open(void)
{
	/* Without LD_PRELOAD the C library's own functions are found first. */
	if (dlsym(RTLD_DEFAULT, "ppoll") != (void *)ppoll)
		return false;
	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	active = event >= 0;
	return active;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *t)
{
	uint64_t time;

	if (!active || clock != CLOCK_MONOTONIC)
		return REAL(clock_gettime)(clock, t);
	time = told = schedule_time(host_time());
	t->tv_sec = (time_t)(time / NS);
	t->tv_nsec = (long)(time % NS);
	return 0;
}

static void notify(void)
{
	uint64_t one = 1;

	/* A counter that is full rings as well. */
	if (write(event, &one, sizeof(one)) < 0 && errno != EAGAIN)
		_exit(1);
}

/* Wait without a time limit. */
static int sleep_for_ever(struct pollfd *fds, nfds_t n, const sigset_t *mask)
{
	static const struct timespec period = { .tv_sec = PROGRESS };
	int ready;

	while ((ready = REAL(ppoll)(fds, n, &period, mask)) == 0)
		statistics_progress();
	return ready;
}

/* The main loop's poll set, with one more file descriptor. */
static int sleep_in_guest_time(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
			       const sigset_t *mask)
{
	static const struct timespec none;
	static struct pollfd *all;
	static nfds_t room;
	int ready;

	if (n >= room) {
		struct pollfd *larger = realloc(all, (n + 1) * sizeof(*all));

		if (!larger)
			return -1;
		all = larger;
		room = n + 1;
	}
	memcpy(all, fds, n * sizeof(*fds));
	all[n] = (struct pollfd){ .fd = event, .events = POLLIN };
	if (schedule_loop_sleeps(timeout ? told + ns_of(timeout) : UINT64_MAX, notify))
		ready = REAL(ppoll)(all, n + 1, &none, mask);
	else if (schedule_mode() == MODE_FAST)
		ready = REAL(ppoll)(all, n + 1, timeout, mask);
	else
		ready = sleep_for_ever(all, n + 1, mask);
	schedule_loop_awake();
	memcpy(fds, all, n * sizeof(*fds));
	if (ready > 0 && all[n].revents) {
		uint64_t rings;

		if (read(event, &rings, sizeof(rings)) < 0 && errno != EAGAIN)
			return -1;
		ready--;
	}
	return ready;
}

EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	bool blocks = !timeout || timeout->tv_sec || timeout->tv_nsec;

	if (!active || !blocks || gettid() != getpid())
		return REAL(ppoll)(fds, n, timeout, mask);
	return sleep_in_guest_time(fds, n, timeout, mask);
}

EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	int error;

	if (active)
		schedule_sleep(condition);
	error = REAL(wait)(condition, mutex);
	if (active)
		schedule_awake();
	return error;
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
	if (active)
		schedule_wake(condition, true);
	return REAL(broadcast)(condition);
}

EXPORT int pthread_cond_signal(pthread_cond_t *condition)
{
	if (active)
		schedule_wake(condition, false);
	return REAL(signal)(condition);
}
