// SPDX-License-Identifier: GPL-2.0-only
#include "statistics.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "access.h"
#include "code.h"
#include "hot.h"
#include "schedule.h"

/* Counters of a vCPU; the output has the same names. */
#define COUNTS(X)							\
	X(ops) X(instructions) X(cycles) X(memory) X(unwritten) X(clean)	\
	X(dirty) X(upgrade) X(remote) X(free) X(stall) X(queue) X(spin) X(idle) X(words)

struct counts {
#define FIELD(name) uint64_t name;
	COUNTS(FIELD)
#undef FIELD
};

static const struct parameters *params;
static FILE *out;
static uint64_t ops[MAX_VCPUS];
static bool works[MAX_VCPUS];

static struct {
	bool open;
	unsigned int number;
	uint32_t point;
	uint64_t clock, switches;
	double host, cpu;
	struct counts counts[MAX_VCPUS];
} window;

void statistics_open(const struct parameters *p, FILE *file)
{
	params = p;
	out = file;
}

void statistics_work(unsigned int c)
{
	works[c] = true;
}

void statistics_op(unsigned int c)
{
	ops[c]++;
}

static struct counts counts_of(unsigned int c)
{
	const struct transfers *t = access_transfers(c);
	struct waits waits = schedule_waits(c);

	return (struct counts){
		.ops = ops[c],
		.instructions = schedule_instructions(c),
		.memory = t->kinds[KIND_MEMORY],
		.unwritten = t->kinds[KIND_UNWRITTEN],
		.clean = t->kinds[KIND_CLEAN],
		.dirty = t->kinds[KIND_DIRTY],
		.upgrade = t->kinds[KIND_UPGRADE],
		.remote = t->remote,
		.free = t->free,
		.stall = t->stall,
		.queue = t->queue,
		.spin = waits.spin,
		.idle = waits.idle,
		.words = t->words,
	};
}

static struct counts since(const struct counts *now, const struct counts *then)
{
	struct counts difference;

#define SUBTRACT(name) difference.name = now->name - then->name;
	COUNTS(SUBTRACT)
#undef SUBTRACT
	return difference;
}

static void add(struct counts *sum, const struct counts *counts)
{
#define ADD(name) sum->name += counts->name;
	COUNTS(ADD)
#undef ADD
}

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds of the host, whose monotonic clock is the guest's here. */
static double host_time(void)
{
	return seconds_of(CLOCK_MONOTONIC_RAW);
}

/* CPU seconds of all threads of the emulator, user and system. */
static double cpu_time(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

static const char *mode_name(void)
{
	static const char *const names[] = { "fast", "ordered", "detailed" };

	return names[schedule_mode()];
}

void statistics_mode_ends(const struct labels *labels)
{
	static double before;
	double now = cpu_time();

	flockfile(out);
	fprintf(out,
		"{\"type\":\"mode\",\"mode\":\"%s\",\"point\":%" PRIu32 ",\"cpu_seconds\":%.3f}\n",
		mode_name(), labels->point, now - before);
	fflush(out);
	funlockfile(out);
	before = now;
}

/* Counters of the phase that ends. */
static void print_code(void)
{
	flockfile(out);
	fprintf(out, "{\"type\":\"code\",\"point\":%" PRIu32 ",", window.point);
	code_print(out);
	fprintf(out, "}\n");
	fflush(out);
	funlockfile(out);
}

void statistics_reset(void)
{
	if (window.number)
		print_code();
	code_reset();
	window.open = false;
	window.number = 0;
	memset(works, 0, sizeof(works));
	hot_reset();
}

void statistics_begin(unsigned int c)
{
	window.open = true;
	window.clock = schedule_clock(c);
	window.switches = schedule_switches();
	window.host = host_time();
	window.cpu = cpu_time();
	for (unsigned int i = 0; i < params->vcpus; i++) {
		window.counts[i] = counts_of(i);
		code_forget(i);
	}
	access_forget_spinning();
	hot_reset();
}

static void print_counts(const struct counts *n)
{
	fprintf(out,
		"\"ops\":%" PRIu64 ",\"instructions\":%" PRIu64 ",\"cycles\":%" PRIu64
		",\"memory\":%" PRIu64 ",\"unwritten\":%" PRIu64 ",\"clean\":%" PRIu64
		",\"dirty\":%" PRIu64 ",\"upgrade\":%" PRIu64 ",\"remote\":%" PRIu64
		",\"free\":%" PRIu64 ",\"stall\":%" PRIu64 ",\"queue\":%" PRIu64
		",\"spin\":%" PRIu64 ",\"idle\":%" PRIu64 ",\"words\":%" PRIu64,
		n->ops, n->instructions, n->cycles, n->memory, n->unwritten, n->clean, n->dirty,
		n->upgrade, n->remote, n->free, n->stall, n->queue, n->spin, n->idle, n->words);
}

static void print_total(const struct counts *sum, unsigned int active, const struct labels *labels,
			uint64_t cycles)
{
	fprintf(out,
		"{\"type\":\"window\",\"point\":%" PRIu32 ",\"seed\":%" PRIu32 ",\"group\":%" PRIu32
		",\"window\":%u,\"active\":%u,\"ns\":%.3f,",
		labels->point, labels->seed, labels->group, window.number, active,
		(double)cycles * 1000 / (double)params->clock_mhz);
	fprintf(out,
		"\"ops\":%" PRIu64 ",\"instructions\":%" PRIu64 ",\"cycles\":%" PRIu64
		",\"transfers\":{\"memory\":%" PRIu64 ",\"unwritten\":%" PRIu64
		",\"clean\":%" PRIu64 ",\"dirty\":%" PRIu64 ",\"upgrade\":%" PRIu64
		",\"remote\":%" PRIu64 ",\"free\":%" PRIu64 "},\"stall\":%" PRIu64
		",\"queue\":%" PRIu64 ",\"spin\":%" PRIu64 ",\"idle\":%" PRIu64,
		sum->ops, sum->instructions, sum->cycles, sum->memory, sum->unwritten, sum->clean,
		sum->dirty, sum->upgrade, sum->remote, sum->free, sum->stall, sum->queue, sum->spin,
		sum->idle);
	if (params->words)
		fprintf(out, ",\"words\":%" PRIu64, sum->words);
	fprintf(out, ",\"switches\":%" PRIu64 ",\"host_seconds\":%.3f,\"cpu_seconds\":%.3f,",
		schedule_switches() - window.switches, host_time() - window.host,
		cpu_time() - window.cpu);
}

void statistics_end(unsigned int c, const struct labels *labels)
{
	uint64_t cycles = schedule_clock(c) - window.clock;
	struct counts each[MAX_VCPUS], sum = { 0 };
	unsigned int active = 0;

	if (!window.open)
		return;
	window.open = false;
	window.point = labels->point;
	for (unsigned int i = 0; i < params->vcpus; i++) {
		struct counts now = counts_of(i);

		each[i] = since(&now, &window.counts[i]);
		each[i].cycles = cycles;
		if (works[i]) {
			add(&sum, &each[i]);
			code_add(i);
			active++;
		}
	}
	access_settle_spinning();
	flockfile(out);
	print_total(&sum, active, labels, cycles);
	fprintf(out, "\"vcpus\":[");
	for (unsigned int i = 0; i < params->vcpus; i++) {
		fprintf(out, "%s{\"vcpu\":%u,", i ? "," : "", i);
		print_counts(&each[i]);
		fprintf(out, "}");
	}
	fprintf(out, "],");
	hot_print((unsigned int)params->hot_lines, out);
	fprintf(out, "}\n");
	fflush(out);
	funlockfile(out);
	window.number++;
}

void statistics_progress(void)
{
	uint64_t instructions = 0;

	for (unsigned int c = 0; c < params->vcpus; c++)
		instructions += schedule_instructions(c);
	fprintf(out,
		"{\"type\":\"progress\",\"mode\":\"%s\",\"cycles\":%" PRIu64
		",\"instructions\":%" PRIu64 ",\"vcpu\":%d,\"host_seconds\":%.1f}\n",
		mode_name(), schedule_now(), instructions, schedule_runner(), host_time());
	fflush(out);
}
