// SPDX-License-Identifier: GPL-2.0-only
/*
 * fscale-personality: varmail, fileserver and catd with one worker process per CPU.
 *
 * Prints "ready" when set up, then "start PHASE" and "end PHASE" at the edges of each phase (the driver
 * reads CPU times then), and one JSON object. After "ready" it waits for a byte, or the end, of its
 * standard input. With --slice it takes a turn for each byte, and prints "turn" with its figures.
 * Exit codes: 0 good, 1 an error (also in the JSON), 2 wrong usage.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/options.h"
#include "barrier.h"
#include "run.h"
#include "stint.h"
#include "turns.h"

#define MAX_CPUS 4096
#define MAX_DIRS 4096

static const struct personality *const personalities[] = { &varmail, &fileserver, &catd };

int failed(struct worker *worker, const char *call, const char *path)
{
	int saved = errno;

	if (!worker->error[0])
		snprintf(worker->error, sizeof(worker->error), "%s %s: %s", call, path,
			 strerror(saved));
	return -1;
}

static void usage(void)
{
	fputs("usage: fscale-personality --personality varmail|fileserver|catd --dir DIR [--dir DIR]...\n"
	      "           --cpus 0,1,... [OPTION]...\n"
	      "  --dir DIR        directory of a partition; worker w uses number w modulo their count\n"
	      "  --cpus LIST      CPUs with commas between them; one worker per CPU\n"
	      "  --files N        files per file set (1000)\n"
	      "  --width N        entries per directory (1000000)\n"
	      "  --size BYTES     mean size of a file (16384)\n"
	      "  --append BYTES   mean size of an append (16384)\n"
	      "  --shared         one file set for all workers instead of one per worker\n"
	      "  --seed N         random seed (1)\n"
	      "  --warmup SEC     untimed seconds (1)\n"
	      "  --duration SEC   timed seconds (5)\n"
	      "  --slice SEC      work for SEC seconds for each byte of standard input\n"
	      "  --settle         call syncfs() after each slice\n",
	      stderr);
	exit(2);
}

static void take_personality(void *to, const char *text)
{
	struct run *run = to;
	unsigned int i;

	for (i = 0; i < sizeof(personalities) / sizeof(*personalities); i++)
		if (!strcmp(text, personalities[i]->name))
			run->personality = personalities[i];
	if (!run->personality)
		usage();
}

static void take_dir(void *to, const char *text)
{
	static const char *dirs[MAX_DIRS];
	struct options *o = to;

	if (o->ndirs == MAX_DIRS)
		usage();
	o->dirs = dirs;
	dirs[o->ndirs++] = text;
}

static void take_cpus(void *to, const char *text)
{
	static int cpus[MAX_CPUS];
	struct options *o = to;
	char *copy = strdup(text);
	char *part;

	if (!copy) {
		fputs("not enough memory for the CPUs of --cpus\n", stderr);
		exit(1);
	}
	o->cpus = cpus;
	o->workers = 0;
	for (part = strtok(copy, ","); part; part = strtok(NULL, ",")) {
		if (o->workers == MAX_CPUS)
			usage();
		cpus[o->workers++] = (int)number("cpus", part, 0, CPU_SETSIZE - 1);
	}
	free(copy);
}

static void parse(struct run *run, int argc, char **argv)
{
	struct options *o = &run->options;
	const struct option_spec specs[] = {
		{ .name = "personality", .take = take_personality, .to = run },
		{ .name = "dir", .take = take_dir, .to = o },
		{ .name = "cpus", .take = take_cpus, .to = o },
		{ .name = "files", .count = &o->files, .least = 2, .most = 100000000 },
		{ .name = "width", .count = &o->width, .least = 2, .most = 100000000 },
		{ .name = "size", .count = &o->size, .least = 1, .most = 1 << 26 },
		{ .name = "append", .count = &o->append, .least = 1, .most = 1 << 26 },
		{ .name = "shared", .flag = &o->shared },
		{ .name = "seed", .seed = &o->seed },
		{ .name = "warmup", .seconds = &o->warmup },
		{ .name = "duration", .seconds = &o->duration },
		{ .name = "slice", .seconds = &o->slice },
		{ .name = "settle", .flag = &o->settle },
	};

	*o = (struct options){ .files = 1000, .width = 1000000, .size = 16384, .append = 16384,
			       .seed = 1, .warmup = 1, .duration = 5 };
	options_parse(specs, sizeof(specs) / sizeof(*specs), argc, argv, usage);
	if (!run->personality || !o->ndirs || !o->workers)
		usage();
	if (o->slice >= 1 || (o->slice > 0 && run->personality->phases > 1)) {
		fputs("--slice takes less than 1 second, and a personality without phases (not catd)\n", stderr);
		exit(2);
	}
}

static int pin(struct worker *worker, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? failed(worker, "pin to", "a CPU") : 0;
}

static bool is_set(const atomic_bool *flag)
{
	return atomic_load_explicit(flag, memory_order_relaxed);
}

/* Execute rounds from each barrier until `halted`, and end at BARRIER_STOP. */
static int rounds(const struct run *run, unsigned int id, void *own)
{
	struct state *state = run->state;
	struct worker *worker = &state->worker[id];
	int barrier;

	for (barrier = BARRIER_FIRST; barrier_pass(state, worker, barrier); barrier++) {
		worker->stint.before_ns = 0;
		while (!is_set(&state->halted) && !is_set(&state->counting)) {
			stint_round(worker);
			if (run->personality->run(state, id, own, 0))
				return 1;
		}
		stint_begin(worker);
		while (!is_set(&state->halted))
			if (run->personality->run(state, id, own, 0))
				return 1;
		stint_end(worker);
	}
	return 0;
}

static int work(void *context, unsigned int id)
{
	struct run *run = context;
	const struct personality *p = run->personality;
	struct state *state = run->state;
	struct worker *worker = &state->worker[id];
	unsigned int phase;
	void *own;

	if (pin(worker, run->options.cpus[id]) || p->setup(state, id, &own))
		return 1;
	atomic_store(&worker->ops, 0);
	atomic_store(&worker->bytes, 0);
	if (p->phases == 1)
		return rounds(run, id, own);
	for (phase = 0; phase < p->phases; phase++) {
		if (!barrier_pass(state, worker, BARRIER_FIRST + (int)phase))
			return 1;
		if (p->run(state, id, own, phase))
			return 1;
		atomic_store(&worker->ended_ns[phase], now_ns());
	}
	return 0;
}

static const char *error_of(void *context, unsigned int id)
{
	struct run *run = context;

	return run->state->worker[id].error;
}

static const char *phase_name(const struct personality *p, unsigned int phase)
{
	return p->phase_names ? p->phase_names[phase] : "all";
}

static void print_edge(const struct run *run, const char *edge, unsigned int phase)
{
	char line[64];

	snprintf(line, sizeof(line), "%s %s", edge, phase_name(run->personality, phase));
	print_line(line);
}

static int timed(struct run *run)
{
	const struct options *o = &run->options;
	struct phase *all = &run->phase[0];
	unsigned long ops[2], bytes[2];
	uint64_t from;

	barrier_open(run->state, BARRIER_FIRST);
	if (crew_until(&run->crew, now_ns() + (uint64_t)(o->warmup * 1e9), NAP_NS, run_at_work))
		return -1;
	print_edge(run, "start", 0);
	from = now_ns();
	run_add_up(run, &ops[0], &bytes[0]);
	if (crew_until(&run->crew, from + (uint64_t)(o->duration * 1e9), NAP_NS, run_at_work))
		return -1;
	all->start_ns = from;
	all->end_ns = now_ns();
	run_add_up(run, &ops[1], &bytes[1]);
	print_edge(run, "end", 0);
	all->ns = all->end_ns - all->start_ns;
	all->ops = ops[1] - ops[0];
	run->bytes = bytes[1] - bytes[0];
	return 0;
}

/* Phases run to their end: a phase takes until its last worker is done. */
static int phased(struct run *run)
{
	unsigned int phase, i;
	unsigned long before, after;
	uint64_t ended, last;

	for (phase = 0; phase < run->personality->phases; phase++) {
		struct phase *this = &run->phase[phase];

		run_add_up(run, &before, &run->bytes);
		print_edge(run, "start", phase);
		this->start_ns = now_ns();
		barrier_open(run->state, BARRIER_FIRST + (int)phase);
		if (run_gather(run, BARRIER_FIRST + (int)phase + 1))
			return -1;
		print_edge(run, "end", phase);
		for (last = 0, i = 0; i < run->options.workers; i++) {
			ended = atomic_load(&run->state->worker[i].ended_ns[phase]);
			last = ended > last ? ended : last;
		}
		run_add_up(run, &after, &run->bytes);
		this->end_ns = last;
		this->ns = last - this->start_ns;
		this->ops = after - before;
	}
	return 0;
}

static int finish(struct run *run)
{
	atomic_store(&run->state->halted, true);
	barrier_open(run->state, BARRIER_STOP);
	do {
		nap(NAP_NS);
		if (crew_look(&run->crew))
			return -1;
	} while (run->crew.ended < run->crew.size);
	return 0;
}

static int measure(struct run *run)
{
	if (crew_start(&run->crew) || run_gather(run, BARRIER_FIRST))
		return -1;
	print_line("ready");
	if (run->options.slice > 0) {
		if (turns_take(run))
			return -1;
	} else {
		getchar();
		if (run->personality->phases > 1 ? phased(run) : timed(run))
			return -1;
	}
	if (finish(run))
		return -1;
	if (!run->phase[0].ops) {
		snprintf(run->crew.error, sizeof(run->crew.error), "the workers completed no operation; use a longer --duration or --slice");
		return -1;
	}
	return 0;
}

static void print(const struct run *run)
{
	unsigned int phase;

	printf("{\"personality\": \"%s\", \"phases\": {", run->personality->name);
	for (phase = 0; phase < run->personality->phases; phase++) {
		const struct phase *this = &run->phase[phase];

		printf("%s\"%s\": {\"ops\": %lu, \"seconds\": %.9f, \"start_ns\": %llu, \"end_ns\": %llu}",
		       phase ? ", " : "", phase_name(run->personality, phase), this->ops,
		       (double)this->ns / 1e9, (unsigned long long)this->start_ns,
		       (unsigned long long)this->end_ns);
	}
	printf("}, \"bytes\": %lu, \"error\": ", run->bytes);
	crew_print_error(&run->crew);
	puts("}");
}

int main(int argc, char **argv)
{
	struct run run = { 0 };
	int bad;

	parse(&run, argc, argv);
	run.state = shared_alloc(sizeof(*run.state) + run.options.workers * sizeof(struct worker));
	run.state->options = &run.options;
	run.crew = (struct crew){ .name = "worker", .size = run.options.workers, .run = &run,
				  .work = work, .error_of = error_of };
	if (run.personality->prepare && run.personality->prepare(run.state))
		return 2;
	bad = measure(&run);
	barrier_open(run.state, BARRIER_STOP);
	crew_kill(&run.crew);
	print(&run);
	return bad ? 1 : 0;
}
