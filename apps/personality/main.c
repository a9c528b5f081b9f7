// SPDX-License-Identifier: GPL-2.0-only
/*
 * fscale-personality: varmail, fileserver and catd with one worker process a CPU.
 *
 * Prints "ready" when set up, then "start PHASE" and "end PHASE" at the edges of each phase (the driver
 * reads CPU times then), and one JSON object. After "ready" it waits for a byte, or the end, of its
 * standard input. Exit codes: 0 good, 1 an error (also in the JSON), 2 wrong usage.
 */
#include "personality.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/crew.h"
#include "../common/options.h"

#define NAP_NS 500000L
#define MAX_CPUS 4096
#define MAX_DIRS 4096

static const struct personality *const personalities[] = { &varmail, &fileserver, &catd };

struct run {
	struct crew crew;
	struct options options;
	const struct personality *personality;
	struct state *state;
	uint64_t start_ns[MAX_PHASES], end_ns[MAX_PHASES];
	unsigned long ops[MAX_PHASES], bytes;
};

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
	      "           --cpus 0,1,... [--files N] [--width N] [--size BYTES] [--append BYTES]\n"
	      "           [--shared] [--seed N] [--warmup SEC] [--duration SEC]\n",
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
		fputs("no memory for --cpus\n", stderr);
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
	};

	*o = (struct options){ .files = 1000, .width = 1000000, .size = 16384, .append = 16384,
			       .seed = 1, .warmup = 1, .duration = 5 };
	options_parse(specs, sizeof(specs) / sizeof(*specs), argc, argv, usage);
	if (!run->personality || !o->ndirs || !o->workers)
		usage();
}

static int pin(struct worker *worker, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? failed(worker, "pin to", "a CPU") : 0;
}

/* Wait until gate `gate` opens; false when all is over instead. */
static bool pass(struct state *state, struct worker *worker, int gate)
{
	int open;

	atomic_store(&worker->ready, gate);
	while ((open = atomic_load(&state->gate)) < gate)
		usleep(200);
	return open != GATE_STOP;
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
	for (phase = 0; phase < p->phases; phase++) {
		/* Gate 1 is the fileset's own (set-up); phases begin at gate 2. */
		if (!pass(state, worker, (int)phase + 2))
			return 1;
		if (p->phases > 1) {
			if (p->run(state, id, own, phase))
				return 1;
			atomic_store(&worker->ended_ns[phase], now_ns());
			continue;
		}
		while (atomic_load_explicit(&state->gate, memory_order_relaxed) != GATE_STOP)
			if (p->run(state, id, own, phase))
				return 1;
	}
	return 0;
}

static const char *said(void *context, unsigned int id)
{
	struct run *run = context;

	return run->state->worker[id].error;
}

/* Wait until all workers stand at `gate`, or have ended. */
static int gather(struct run *run, int gate)
{
	struct crew *crew = &run->crew;
	unsigned int i, there;

	do {
		nap(NAP_NS);
		if (crew_look(crew))
			return -1;
		for (there = 0, i = 0; i < crew->size; i++)
			there += atomic_load(&run->state->worker[i].ready) >= gate ||
				 !crew->pids[i];
	} while (there < crew->size);
	return 0;
}

static void add_up(const struct run *run, unsigned long *ops, unsigned long *bytes)
{
	unsigned int i;

	*ops = *bytes = 0;
	for (i = 0; i < run->options.workers; i++) {
		*ops += atomic_load(&run->state->worker[i].ops);
		*bytes += atomic_load(&run->state->worker[i].bytes);
	}
}

static int all_at_work(void *context)
{
	struct run *run = context;
	struct crew *crew = &run->crew;

	if (crew_look(crew))
		return -1;
	if (crew->ended) {
		snprintf(crew->error, sizeof(crew->error), "a worker ended too early");
		return -1;
	}
	return 0;
}

static const char *phase_name(const struct personality *p, unsigned int phase)
{
	return p->phase_names ? p->phase_names[phase] : "all";
}

static void say_edge(const struct run *run, const char *edge, unsigned int phase)
{
	char line[64];

	snprintf(line, sizeof(line), "%s %s", edge, phase_name(run->personality, phase));
	say(line);
}

static int timed(struct run *run)
{
	const struct options *o = &run->options;
	unsigned long ops[2], bytes[2];
	uint64_t from;

	atomic_store(&run->state->gate, 2);
	if (crew_until(&run->crew, now_ns() + (uint64_t)(o->warmup * 1e9), NAP_NS, all_at_work))
		return -1;
	say_edge(run, "start", 0);
	from = now_ns();
	add_up(run, &ops[0], &bytes[0]);
	if (crew_until(&run->crew, from + (uint64_t)(o->duration * 1e9), NAP_NS, all_at_work))
		return -1;
	run->start_ns[0] = from;
	run->end_ns[0] = now_ns();
	add_up(run, &ops[1], &bytes[1]);
	say_edge(run, "end", 0);
	run->ops[0] = ops[1] - ops[0];
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
		add_up(run, &before, &run->bytes);
		say_edge(run, "start", phase);
		run->start_ns[phase] = now_ns();
		atomic_store(&run->state->gate, (int)phase + 2);
		if (gather(run, (int)phase + 3))
			return -1;
		say_edge(run, "end", phase);
		for (last = 0, i = 0; i < run->options.workers; i++) {
			ended = atomic_load(&run->state->worker[i].ended_ns[phase]);
			last = ended > last ? ended : last;
		}
		add_up(run, &after, &run->bytes);
		run->end_ns[phase] = last;
		run->ops[phase] = after - before;
	}
	return 0;
}

static int finish(struct run *run)
{
	atomic_store(&run->state->gate, GATE_STOP);
	do {
		nap(NAP_NS);
		if (crew_look(&run->crew))
			return -1;
	} while (run->crew.ended < run->crew.size);
	return 0;
}

static int measure(struct run *run)
{
	if (crew_start(&run->crew) || gather(run, 2))
		return -1;
	say("ready");
	getchar();
	if (run->personality->phases > 1 ? phased(run) : timed(run))
		return -1;
	if (finish(run))
		return -1;
	if (!run->ops[0]) {
		snprintf(run->crew.error, sizeof(run->crew.error), "no operation was done");
		return -1;
	}
	return 0;
}

static void print(const struct run *run)
{
	unsigned int phase;

	printf("{\"personality\": \"%s\", \"phases\": {", run->personality->name);
	for (phase = 0; phase < run->personality->phases; phase++)
		printf("%s\"%s\": {\"ops\": %lu, \"seconds\": %.9f, \"start_ns\": %llu, \"end_ns\": %llu}",
		       phase ? ", " : "", phase_name(run->personality, phase), run->ops[phase],
		       (double)(run->end_ns[phase] - run->start_ns[phase]) / 1e9,
		       (unsigned long long)run->start_ns[phase],
		       (unsigned long long)run->end_ns[phase]);
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
				  .work = work, .said = said };
	if (run.personality->prepare && run.personality->prepare(run.state))
		return 2;
	bad = measure(&run);
	atomic_store(&run.state->gate, GATE_STOP);
	crew_kill(&run.crew);
	print(&run);
	return bad ? 1 : 0;
}
