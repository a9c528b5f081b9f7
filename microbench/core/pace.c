// SPDX-License-Identifier: GPL-2.0-only
#include "pace.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

/* The longest sleep, after which a worker sees that the window is over. */
#define NAP_NS 20000000u

void pace_start(struct pace *pace)
{
	/* The default lets the kernel wake a thread 50 us late to save power. */
	prctl(PR_SET_TIMERSLACK, 1ul);
	pace_begin(pace, now_ns());
}

static enum phase phase(const struct shared *shm)
{
	return atomic_load_explicit(&shm->phase, memory_order_acquire);
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u),
	};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

bool pace_await(const struct pace *pace, const struct shared *shm)
{
	while (phase(shm) == PHASE_RUN) {
		uint64_t now = now_ns(), left;

		if (now >= pace->next)
			return true;
		left = pace->next - now;
		if (left > NAP_NS)
			sleep_until(now + NAP_NS);
		else if (left > pace->spin)
			sleep_until(pace->next - pace->spin);
	}
	return false;
}

uint64_t pace_backlog(struct pace *pace, const struct shared *shm)
{
	uint64_t count = 0, end;

	while (phase(shm) != PHASE_STOP)
		sched_yield();
	end = atomic_load_explicit(&shm->closed_ns, memory_order_relaxed);
	for (; pace->next < end; count++)
		pace_next(pace);
	return count;
}
