// SPDX-License-Identifier: GPL-2.0-only
#include "schedule.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "random.h"

#define NEVER UINT64_MAX
#define NOBODY UINT_MAX
/* Enough fuel for a whole mode without turns. */
#define AMPLE (FUEL_OUT / 2)

struct vcpu {
	struct counters *counters;
	struct counters initial; /* used until schedule_count() gives it others */
	uint64_t offset;	/* its clock is offset + fuel */
	struct waits waits;
	const void *condition;	/* what it sleeps on */
	const void *idle_condition;	/* of its last idle sleep */
	uint64_t string_bytes;	/* moved by string instructions and not yet charged */
	uint64_t grace;		/* extensions since its turn began */
	bool parked;
	bool idle;		/* its present or next sleep is that of an idle CPU */
	bool queued;		/* its thread waits for its turn */
	atomic_uint wakeups;	/* an eventcount, as `rounds` of the main loop */
};

static const struct parameters *params;
static struct vcpu vcpus[MAX_VCPUS];
/* The clock from which on each may run; NEVER while it sleeps. Every turn scans the array. */
static uint64_t eligible_at[MAX_VCPUS] __attribute__((aligned(64)));
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local unsigned int self = NOBODY;

static enum mode mode;
static unsigned int runner = NOBODY;
static unsigned int pending_wake = NOBODY;	/* the vCPU that release_lock() wakes */
static unsigned int leaving;	/* vCPUs that wait until the others leave translated code */
static uint64_t now;		/* the smallest clock */
static uint64_t switches;
static struct random holds;

/* The guest's time is `time_base` at `now` == `clock_base`, or at the host's `host_base`. */
static uint64_t time_base, clock_base, host_base;
static bool time_runs;

static struct {
	bool sleeps;
	uint64_t deadline;	/* ns */
	void (*notify)(void);
	atomic_uint rounds;
} loop = { .deadline = NEVER };

static void eventcount_await(atomic_uint *event, unsigned int seen)
{
	syscall(SYS_futex, event, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void eventcount_wake(atomic_uint *event)
{
	syscall(SYS_futex, event, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void eventcount_advance(atomic_uint *event)
{
	atomic_fetch_add(event, 1);
	eventcount_wake(event);
}

/*
 * Wake the vCPU that got the turn only now: woken while the lock is held, it would run, wait for
 * the lock, and each turn would take four switches of the host's threads instead of one.
 */
static void release_lock(void)
{
	unsigned int c = pending_wake;

	pending_wake = NOBODY;
	pthread_mutex_unlock(&lock);
	if (c != NOBODY)
		eventcount_wake(&vcpus[c].wakeups);
}

static uint64_t clock_of(const struct vcpu *v)
{
	return v->offset + v->counters->fuel;
}

static void refuel(struct vcpu *v, uint64_t budget)
{
	uint64_t clock = clock_of(v);

	v->counters->fuel = FUEL_OUT - budget;
	v->offset = clock - v->counters->fuel;
}

static void set_clock(struct vcpu *v, uint64_t clock)
{
	v->offset = clock - v->counters->fuel;
}

static uint64_t time_of(uint64_t clock)
{
	return time_base + (clock - clock_base) * 1000 / params->clock_mhz;
}

/* The first clock at which it is `time` or later. */
static uint64_t clock_at(uint64_t time)
{
	if (time <= time_base)
		return clock_base;
	return clock_base + ((time - time_base) * params->clock_mhz + 999) / 1000;
}

static void advance_now(uint64_t clock)
{
	if (clock != NEVER && clock > now)
		now = clock;
}

/* The vCPU that is eligible first, or NOBODY, and the clock of the second. */
static unsigned int first_of(uint64_t *others)
{
	uint64_t least = NEVER, second = NEVER;
	unsigned int first = NOBODY;

	for (unsigned int i = 0; i < params->vcpus; i++) {
		uint64_t at = eligible_at[i];

		if (at < least) {
			second = least;
			least = at;
			first = i;
		} else if (at < second) {
			second = at;
		}
	}
	*others = second;
	return first;
}

static void grant_turn(unsigned int c)
{
	runner = c;
	switches++;
	pending_wake = NOBODY;
	if (c == NOBODY || !vcpus[c].queued)
		return;
	atomic_fetch_add(&vcpus[c].wakeups, 1);
	pending_wake = c;
}

static void wake_queue(void)
{
	for (unsigned int i = 0; i < params->vcpus; i++) {
		if (vcpus[i].queued)
			eventcount_advance(&vcpus[i].wakeups);
	}
}

/* Let the main loop fire its timers and sleep again. Releases the lock meanwhile. */
static void loop_fire(void)
{
	unsigned int round = atomic_load(&loop.rounds);

	if (loop.sleeps)
		loop.notify();
	while (atomic_load(&loop.rounds) == round) {
		release_lock();
		eventcount_await(&loop.rounds, round);
		pthread_mutex_lock(&lock);
	}
}

static bool loop_due(void)
{
	return mode != MODE_FAST && loop.deadline != NEVER && time_of(now) >= loop.deadline;
}

/* No vCPU runs: the next event is a timer of the guest. */
static void skip_to_deadline(void)
{
	if (!loop.sleeps || loop.deadline == NEVER)
		return;
	advance_now(clock_at(loop.deadline));
	loop.notify();
}

static void pass_turn(void)
{
	uint64_t others;
	unsigned int first = first_of(&others);

	grant_turn(first);
	if (first == NOBODY)
		skip_to_deadline();
}

static void unpark(unsigned int c)
{
	struct vcpu *v = &vcpus[c];

	if (!v->parked)
		return;
	v->parked = false;
	if (eligible_at[c] == NEVER || eligible_at[c] <= clock_of(v))
		return;
	v->waits.spin += eligible_at[c] - clock_of(v);
	set_clock(v, eligible_at[c]);
}

static uint64_t quantum(void)
{
	return mode == MODE_DETAILED ? params->quantum : params->quantum_ordered;
}

/* Whether `c` may run now; if so, sets its fuel. */
static bool take_turn(unsigned int c)
{
	uint64_t others, least, budget = params->slice_max;
	unsigned int first = first_of(&others);
	struct vcpu *v = &vcpus[c];

	least = first == c ? others : eligible_at[first];
	advance_now(eligible_at[first]);
	if (runner != NOBODY && runner != c && eligible_at[runner] != NEVER)
		return false;
	if (least != NEVER && eligible_at[c] > least + quantum()) {
		grant_turn(first);
		return false;
	}
	runner = c;
	if (least != NEVER && least + quantum() + 1 - eligible_at[c] < budget)
		budget = least + quantum() + 1 - eligible_at[c];
	unpark(c);
	refuel(v, budget);
	return true;
}

void schedule_turn(unsigned int c)
{
	struct vcpu *v = &vcpus[c];

	self = c;
	pthread_mutex_lock(&lock);
	v->grace = 0;
	refuel(v, 0);
	if (!v->parked)
		eligible_at[c] = clock_of(v);
	/* If the others must leave translated code, this one must, too: its next block ends. */
	while (mode != MODE_FAST && !leaving) {
		unsigned int seen = atomic_load(&v->wakeups);

		if (runner == c && loop_due()) {
			loop_fire();
			continue;
		}
		if (take_turn(c)) {
			if (!loop_due())
				break;
			refuel(v, 0);
			eligible_at[c] = clock_of(v);
			continue;
		}
		v->queued = true;
		release_lock();
		eventcount_await(&v->wakeups, seen);
		pthread_mutex_lock(&lock);
		v->queued = false;
	}
	if (mode == MODE_FAST)
		refuel(v, AMPLE);
	release_lock();
}

void schedule_open(const struct parameters *p)
{
	params = p;
	for (unsigned int i = 0; i < MAX_VCPUS; i++)
		eligible_at[i] = NEVER;
}

void schedule_attach(unsigned int c)
{
	struct vcpu *v = &vcpus[c];

	pthread_mutex_lock(&lock);
	self = c;
	v->counters = &v->initial;
	refuel(v, AMPLE);
	set_clock(v, now);
	eligible_at[c] = now;
	release_lock();
}

bool schedule_count(unsigned int c, struct counters *counters)
{
	struct vcpu *v = &vcpus[c];

	if (!v->counters)
		return false;
	*counters = *v->counters;
	v->counters = counters;
	return true;
}

uint64_t schedule_clock(unsigned int c)
{
	return clock_of(&vcpus[c]);
}

struct waits schedule_waits(unsigned int c)
{
	struct vcpu *v = &vcpus[c];
	struct waits waits = v->waits;

	if (eligible_at[c] == NEVER && v->idle && now > clock_of(v))
		waits.idle += now - clock_of(v);
	return waits;
}

uint64_t schedule_instructions(unsigned int c)
{
	return vcpus[c].counters ? vcpus[c].counters->instructions : 0;
}

uint64_t schedule_now(void)
{
	uint64_t clock;

	pthread_mutex_lock(&lock);
	clock = now;
	release_lock();
	return clock;
}

int schedule_runner(void)
{
	unsigned int c;

	pthread_mutex_lock(&lock);
	c = runner;
	release_lock();
	return c == NOBODY ? -1 : (int)c;
}

uint64_t schedule_switches(void)
{
	return switches;
}

enum mode schedule_mode(void)
{
	return mode;
}

void schedule_stall(unsigned int c, uint64_t cycles)
{
	struct vcpu *v = &vcpus[c];

	/*
	 * The access has been made already. Were the others let on here, they would take
	 * the line between a load and its compare-and-exchange, again and again. How long it
	 * stays is random: with a fixed time cores keep in turn at a lock that is never found taken.
	 */
	if (v->counters->fuel + cycles + params->grace > FUEL_OUT && v->grace < params->graces) {
		v->grace++;
		v->counters->fuel += cycles;
		refuel(v, random_below(&holds, 2 * params->grace + 1));
		return;
	}
	v->counters->fuel += cycles;
}

void schedule_park(unsigned int c)
{
	struct vcpu *v = &vcpus[c];

	pthread_mutex_lock(&lock);
	refuel(v, 0);
	v->parked = true;
	eligible_at[c] = clock_of(v) + params->park;
	release_lock();
}

bool schedule_parked(unsigned int c)
{
	return vcpus[c].parked;
}

/* A vCPU that is parked may look again at `clock`. */
static void recheck_at(unsigned int c, uint64_t clock)
{
	struct vcpu *v = &vcpus[c];

	if (!v->parked || eligible_at[c] == NEVER)
		return;
	if (clock < clock_of(v))
		clock = clock_of(v);
	if (clock < eligible_at[c])
		eligible_at[c] = clock;
}

void schedule_unpark(unsigned int c, uint64_t clock)
{
	pthread_mutex_lock(&lock);
	recheck_at(c, clock);
	release_lock();
}

void schedule_string(unsigned int c, uint64_t bytes)
{
	struct vcpu *v = &vcpus[c];

	v->string_bytes += bytes;
	v->counters->fuel += v->string_bytes / params->string_bytes;
	v->string_bytes %= params->string_bytes;
}

void schedule_spin(unsigned int c, uint64_t cycles)
{
	vcpus[c].waits.spin += cycles;
}

static uint64_t scale_host_time(uint64_t host, bool busy)
{
	uint64_t passed = host - host_base;

	return time_base += busy ? passed / params->boot_slowdown : passed;
}

static bool any_awake(void)
{
	for (unsigned int i = 0; i < params->vcpus; i++) {
		if (eligible_at[i] != NEVER)
			return true;
	}
	return false;
}

uint64_t schedule_time(uint64_t host)
{
	uint64_t time;

	pthread_mutex_lock(&lock);
	/* The guest's clock begins at the host's. */
	if (!time_runs)
		time_base = host_base = host;
	time_runs = true;
	if (mode == MODE_FAST)
		time = scale_host_time(host, any_awake());
	else
		time = time_of(now);
	host_base = host;
	release_lock();
	return time;
}

void schedule_set_mode(enum mode wanted, uint64_t seed)
{
	struct random random = random_from(seed);

	pthread_mutex_lock(&lock);
	if (mode != MODE_FAST)
		time_base = time_of(now);
	clock_base = now;
	mode = wanted;
	holds = random_from(seed);
	runner = NOBODY;
	for (unsigned int i = 0; i < params->vcpus; i++) {
		struct vcpu *v = &vcpus[i];

		v->parked = false;
		v->grace = 0;
		set_clock(v, now);
		if (mode == MODE_DETAILED && params->skew)
			set_clock(v, now + random_below(&random, params->skew));
		refuel(v, mode == MODE_FAST ? AMPLE : 0);
		if (eligible_at[i] != NEVER)
			eligible_at[i] = clock_of(v);
	}
	if (loop.sleeps)
		loop.notify();
	release_lock();
}

void schedule_idle(unsigned int c, bool idle)
{
	vcpus[c].idle = idle;
}

static void vcpu_sleeps(struct vcpu *v, unsigned int c, const void *condition)
{
	refuel(v, 0);
	v->parked = false;
	eligible_at[c] = NEVER;
	v->condition = condition;
	if (v->idle)
		v->idle_condition = condition;
	else if (!leaving++)
		wake_queue();
	if (mode != MODE_FAST && (runner == c || runner == NOBODY))
		pass_turn();
}

static void loop_gone(void)
{
	loop.sleeps = false;
	loop.deadline = NEVER;
	eventcount_advance(&loop.rounds);
}

void schedule_sleep(const void *condition)
{
	if (!params)
		return;
	pthread_mutex_lock(&lock);
	if (self != NOBODY)
		vcpu_sleeps(&vcpus[self], self, condition);
	else if (getpid() == gettid())
		loop_gone();
	release_lock();
}

static uint64_t waker_clock(void)
{
	return self != NOBODY && eligible_at[self] != NEVER ? clock_of(&vcpus[self]) : now;
}

static void vcpu_wakes(struct vcpu *v, unsigned int c)
{
	uint64_t clock = waker_clock();

	v->condition = NULL;
	if (v->idle && clock > clock_of(v)) {
		v->waits.idle += clock - clock_of(v);
		set_clock(v, clock);
	}
	if (!v->idle)
		leaving--;
	eligible_at[c] = clock_of(v);
	/* The running vCPU got its fuel before this one was awake. */
	if (self == runner && self != NOBODY)
		refuel(&vcpus[self], 0);
}

void schedule_wake(const void *condition, bool all)
{
	if (!params)
		return;
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < params->vcpus; i++) {
		struct vcpu *v = &vcpus[i];

		if (v->condition == condition) {
			vcpu_wakes(v, i);
			if (!all)
				break;
		} else if (v->idle_condition == condition) {
			/* It is awake already: this is an interrupt. */
			recheck_at(i, waker_clock());
		}
	}
	release_lock();
}

void schedule_awake(void)
{
	if (!params || self == NOBODY)
		return;
	pthread_mutex_lock(&lock);
	if (vcpus[self].condition)
		vcpu_wakes(&vcpus[self], self);
	release_lock();
}

bool schedule_loop_sleeps(uint64_t deadline, void (*notify)(void))
{
	bool due;

	pthread_mutex_lock(&lock);
	loop.sleeps = true;
	loop.deadline = deadline;
	loop.notify = notify;
	eventcount_advance(&loop.rounds);
	if (mode != MODE_FAST && deadline != NEVER && !any_awake())
		advance_now(clock_at(deadline));
	due = loop_due();
	release_lock();
	return due;
}

void schedule_loop_awake(void)
{
	pthread_mutex_lock(&lock);
	loop.sleeps = false;
	release_lock();
}
