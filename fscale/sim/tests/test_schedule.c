// SPDX-License-Identifier: GPL-2.0-only
/* Threads that count cycles as translated code does; each test in a process of its own. */
#include "../schedule.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../tests/check.h"

#define MOST 8
#define NS_A_CYCLE 2	/* at 500 MHz */

static struct parameters machine = {
	.clock_mhz = 500,
	.quantum = 100,
	.quantum_ordered = 100,
	.slice_max = 1000,
	.park = 3000,
	.grace = 60,
	.graces = 2,
	.boot_slowdown = 1,
};

struct log {
	unsigned int length;
	unsigned char turns[1 << 16];
};

static struct counters counters[MOST];
static pthread_barrier_t ready, go;
static void (*body)(unsigned int c);
static atomic_int inside;
static struct log *log_;

static void *thread(void *argument)
{
	unsigned int c = (unsigned int)(size_t)argument;

	schedule_attach(c);
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&go);
	schedule_turn(c);
	body(c);
	/* As an idle vCPU that nobody wakes. */
	schedule_idle(c, true);
	schedule_sleep(&counters[c]);
	return NULL;
}

static void run(unsigned int n, uint64_t seed, void (*each)(unsigned int c))
{
	pthread_t threads[MOST];

	machine.vcpus = n;
	schedule_open(&machine);
	body = each;
	pthread_barrier_init(&ready, NULL, n + 1);
	pthread_barrier_init(&go, NULL, n + 1);
	for (size_t c = 0; c < n; c++)
		CHECK(!pthread_create(&threads[c], NULL, thread, (void *)c));
	pthread_barrier_wait(&ready);
	for (unsigned int c = 0; c < n; c++)
		CHECK(schedule_count(c, &counters[c]));
	CHECK(!schedule_count(n, &counters[0]));
	schedule_set_mode(MODE_DETAILED, seed);
	pthread_barrier_wait(&go);
	for (unsigned int c = 0; c < n; c++)
		CHECK(!pthread_join(threads[c], NULL));
}

/* A block of so many cycles, and the check of its fuel that follows it. */
static void work(unsigned int c, uint64_t cycles)
{
	counters[c].fuel += cycles;
	if (counters[c].fuel >= FUEL_OUT)
		schedule_turn(c);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool woken;

static void sleep_until_woken(unsigned int c, bool idle)
{
	pthread_mutex_lock(&mutex);
	schedule_idle(c, idle);
	while (!woken) {
		schedule_sleep(&condition);
		pthread_cond_wait(&condition, &mutex);
		schedule_awake();
	}
	pthread_mutex_unlock(&mutex);
}

static void wake(void)
{
	pthread_mutex_lock(&mutex);
	woken = true;
	schedule_wake(&condition, true);
	pthread_cond_broadcast(&condition);
	pthread_mutex_unlock(&mutex);
}

static void in_turn(unsigned int c)
{
	for (unsigned int i = 0; i < 3000; i++) {
		uint64_t clock = schedule_clock(c);

		CHECK_EQUAL(atomic_fetch_add(&inside, 1), 0);
		/* Until the first has done, at 15000. */
		for (unsigned int other = 0; clock < 14000 && other < machine.vcpus; other++)
			CHECK(clock <= schedule_clock(other) + machine.quantum + 20 + 1);
		if (log_)
			log_->turns[log_->length++ % sizeof(log_->turns)] = (unsigned char)c;
		atomic_fetch_sub(&inside, 1);
		work(c, 5 + c * 2);
	}
}

static void test_one_runs_at_a_time_and_none_is_a_quantum_ahead(void)
{
	run(4, 1, in_turn);
}

static void test_seed_decides_the_order(void)
{
	machine.skew = 1000;
	log_ = calloc(1, sizeof(*log_));
	CHECK(log_);
	run(4, 1, in_turn);
	CHECK_EQUAL(log_->length, 12000);
	/* The parent compares. */
	CHECK(write(STDOUT_FILENO, log_->turns, 12000) == 12000);
}

static void test_other_seed(void)
{
	machine.skew = 1000;
	log_ = calloc(1, sizeof(*log_));
	CHECK(log_);
	run(4, 2, in_turn);
	CHECK(write(STDOUT_FILENO, log_->turns, 12000) == 12000);
}

static void stalled(unsigned int c)
{
	if (c == 0) {
		uint64_t mine = schedule_clock(0), other = schedule_clock(1);

		/* After two of them it may go on for the grace. */
		for (unsigned int i = 0; i < 3; i++) {
			work(0, 0);
			CHECK_EQUAL(schedule_clock(1), other);
			schedule_stall(0, 5000);
		}
		work(0, 0);
		CHECK_EQUAL(schedule_clock(0), mine + 15000);
		CHECK(schedule_clock(1) >= mine + 15000 - machine.quantum);
		return;
	}
	while (schedule_clock(1) < 20000)
		work(1, 20);
}

static void test_stall_lets_others_catch_up(void)
{
	run(2, 0, stalled);
}

#define HOLDS 24
static uint64_t hold_seed;

static void graceful(unsigned int c)
{
	if (c == 0) {
		uint64_t other = schedule_clock(1);
		unsigned char held = 0;

		schedule_stall(0, 5000);
		while (schedule_clock(1) == other) {
			CHECK(held <= 2 * machine.grace);
			held++;
			work(0, 1);
		}
		CHECK(schedule_clock(1) >= 5000 - machine.quantum);
		/* The parent compares. */
		CHECK(write(STDOUT_FILENO, &held, 1) == 1);
		return;
	}
	while (schedule_clock(1) < 20000)
		work(1, 20);
}

static void test_grace(void)
{
	run(2, hold_seed, graceful);
}

static void parked(unsigned int c)
{
	if (c == 0) {
		schedule_park(0);
		work(0, 0);
		/* Until it is over. */
		CHECK_EQUAL(schedule_clock(0), 3000);
		CHECK_EQUAL(schedule_waits(0).spin, 3000);
		CHECK(schedule_clock(1) >= 3000 - machine.quantum);
		schedule_park(0);
		work(0, 0);
		/* Until the other has written at 4000. */
		CHECK_EQUAL(schedule_clock(0), 4000);
		CHECK_EQUAL(schedule_waits(0).spin, 4000);
		return;
	}
	while (schedule_clock(1) < 3500)
		work(1, 20);
	CHECK(schedule_parked(0));
	schedule_unpark(0, 4000);
	/* Later than that it will not be. */
	schedule_unpark(0, 4500);
	while (schedule_clock(1) < 9000)
		work(1, 20);
}

static void interrupted(unsigned int c)
{
	if (c == 0) {
		sleep_until_woken(0, true);
		schedule_idle(0, false);
		schedule_park(0);
		work(0, 0);
		/* At 500 it has woken, at 1000 it was interrupted. */
		CHECK(schedule_clock(0) >= 1000);
		CHECK(schedule_clock(0) < 1500);
		return;
	}
	while (schedule_clock(1) < 500)
		work(1, 20);
	wake();
	while (schedule_clock(1) < 1000)
		work(1, 20);
	CHECK(schedule_parked(0));
	schedule_wake(&condition, true);
	while (schedule_clock(1) < 9000)
		work(1, 20);
}

static void test_interrupt_ends_parking(void)
{
	run(2, 0, interrupted);
}

static void test_park(void)
{
	run(2, 0, parked);
}

static void idles(unsigned int c)
{
	if (c == 0) {
		work(0, 10);
		sleep_until_woken(0, true);
		work(0, 0);
		/* As late as who woke it, and the other has waited for its thread. */
		CHECK_EQUAL(schedule_clock(0), 5500);
		CHECK_EQUAL(schedule_waits(0).idle, 5490);
		CHECK(schedule_clock(1) <= 5500 + machine.quantum + 20 + 1);
		return;
	}
	/* In the middle of a slice. */
	while (schedule_clock(1) < 5500)
		work(1, 20);
	wake();
	while (schedule_clock(1) < 9000)
		work(1, 20);
}

static void test_idle_vcpu_wakes_at_the_clock_of_who_woke_it(void)
{
	run(2, 0, idles);
}

/* A vCPU that waits for all others to leave translated code, as for an exclusive section. */
static atomic_uint left;

static void leaves(unsigned int c)
{
	if (c == 0) {
		sleep_until_woken(0, false);
		schedule_idle(0, false);
		work(0, 0);
		CHECK_EQUAL(schedule_waits(0).idle, 0);
		return;
	}
	/* So far ahead that its turn does not come while the others work. */
	if (c == 1)
		schedule_stall(1, 1ull << 38);
	work(c, 1);
	atomic_fetch_add(&left, 1);
	for (unsigned int tries = 0; atomic_load(&left) < 3; tries++) {
		CHECK(tries < 20000);
		usleep(50);
		work(c, 1);
	}
	if (c == 1)
		wake();
}

static void test_all_may_leave_when_one_waits_for_them(void)
{
	machine.graces = 0;
	run(4, 0, leaves);
}

/* The main loop: a thread of its own, with a timer. */
static atomic_uint rings, fired, ended, asleep;
static atomic_ulong fired_at;

static void ring(void)
{
	atomic_fetch_add(&rings, 1);
}

static void *main_loop(void *argument)
{
	(void)argument;
	while (!atomic_load(&ended)) {
		bool due = schedule_loop_sleeps(atomic_load(&fired) ? UINT64_MAX : 4000, ring);

		atomic_store(&asleep, 1);
		while (!due && !atomic_load(&rings))
			usleep(100);
		atomic_store(&rings, 0);
		schedule_loop_awake();
		if (atomic_load(&fired) || schedule_time(0) < 4000)
			continue;
		usleep(20000);
		atomic_store(&fired_at, schedule_time(0));
		atomic_fetch_add(&fired, 1);
	}
	return NULL;
}

static void timed(unsigned int c)
{
	while (schedule_clock(c) * NS_A_CYCLE < 20000) {
		/* However long the loop takes, no vCPU sees a later time before the timer has fired. */
		CHECK(atomic_load(&fired) ||
		      schedule_clock(c) * NS_A_CYCLE < 4000 + (machine.slice_max + 20) * NS_A_CYCLE);
		work(c, 20);
	}
}

static void test_timer_fires_in_simulated_time(void)
{
	pthread_t loop;

	machine.vcpus = 2;
	schedule_open(&machine);
	CHECK(!pthread_create(&loop, NULL, main_loop, NULL));
	/* Before the loop has said when its timer is due, no vCPU has to wait for it. */
	while (!atomic_load(&asleep))
		usleep(100);
	run(2, 0, timed);
	atomic_store(&ended, 1);
	ring();
	CHECK(!pthread_join(loop, NULL));
	CHECK_EQUAL(atomic_load(&fired), 1);
	CHECK(atomic_load(&fired_at) >= 4000);
	CHECK(atomic_load(&fired_at) <= 4000 + machine.slice_max * NS_A_CYCLE);
}

static void nothing(unsigned int c)
{
	(void)c;
}

/* All are idle: the time goes on to the timer at once. */
static void test_idle_machine_skips_to_the_next_timer(void)
{
	run(2, 0, nothing);
	CHECK(schedule_loop_sleeps(5000000, ring));
	CHECK_EQUAL(schedule_time(0), 5000000);
	/* One that is over already does not move it. */
	CHECK(schedule_loop_sleeps(10, ring));
	schedule_set_mode(MODE_ORDERED, 0);
	CHECK(schedule_loop_sleeps(10, ring));
	CHECK_EQUAL(schedule_time(0), 5000000);
}

static void alone(unsigned int c)
{
	for (unsigned int i = 0; i < 1000; i++)
		work(c, 20);
	CHECK_EQUAL(schedule_clock(c), 20000);
}

static void test_one_vcpu_runs_on(void)
{
	run(1, 0, alone);
}

/* Standard output of a test that must succeed. */
static size_t passes(const char *name, void (*test)(void), unsigned char *output, size_t size)
{
	int fds[2], status;
	size_t length = 0;
	ssize_t got;
	pid_t pid;

	CHECK(!pipe(fds));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		/* A turn that never comes is a failure, not a hang. */
		alarm(60);
		test();
		free(log_);
		exit(0);
	}
	close(fds[1]);
	while ((got = read(fds[0], output + length, size - length)) > 0)
		length += (size_t)got;
	close(fds[0]);
	CHECK(waitpid(pid, &status, 0) == pid);
	if (status)
		fprintf(stderr, "%s failed\n", name);
	CHECK_EQUAL(status, 0);
	return length;
}

#define PASSES(test) passes(#test, test, output, sizeof(output))

int main(void)
{
	static unsigned char output[1 << 16], again[1 << 16];
	uint64_t held = 0;
	bool differ = false;
	size_t length;

	PASSES(test_one_vcpu_runs_on);
	PASSES(test_one_runs_at_a_time_and_none_is_a_quantum_ahead);
	PASSES(test_stall_lets_others_catch_up);
	PASSES(test_park);
	PASSES(test_interrupt_ends_parking);
	PASSES(test_idle_vcpu_wakes_at_the_clock_of_who_woke_it);
	PASSES(test_all_may_leave_when_one_waits_for_them);
	PASSES(test_timer_fires_in_simulated_time);
	PASSES(test_idle_machine_skips_to_the_next_timer);

	/* It lasts for another time with each seed, and for the mean in the mean. */
	for (hold_seed = 1; hold_seed <= HOLDS; hold_seed++) {
		CHECK_EQUAL(PASSES(test_grace), 1);
		held += output[0];
		differ |= output[0] != again[0] && hold_seed > 1;
		again[0] = output[0];
	}
	CHECK(differ);
	CHECK(held > HOLDS * machine.grace / 2 && held < HOLDS * machine.grace * 3 / 2);

	length = PASSES(test_seed_decides_the_order);
	CHECK_EQUAL(length, 12000);
	memcpy(again, output, length);
	PASSES(test_seed_decides_the_order);
	CHECK(!memcmp(again, output, length));
	PASSES(test_other_seed);
	CHECK(memcmp(again, output, length));
	return 0;
}
