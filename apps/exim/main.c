// SPDX-License-Identifier: GPL-2.0-only
/*
 * fscale-smtp-load: sends messages to Exim daemons on loopback and counts the DELIVERED ones.
 *
 * It prints "start" and "end", each on a line, at the edges of the timed window (the driver reads
 * CPU times then), and one JSON object at the end. Exit codes: 0 good, 1 an error (also in the
 * JSON), 2 wrong usage. Acceptance runs ahead of delivery, so clients pause while more than
 * --backlog messages are accepted and not delivered.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/crew.h"
#include "../common/options.h"
#include "../common/util.h"
#include "log.h"
#include "smtp.h"

#define POLL_NS 2000000L /* period of reading the logs */
#define SETTLE_NS 50000000L /* time in which a process that closed its sockets ends */
#define MAX_PORTS 4096

struct backlog {
	unsigned long samples, empty;
	double sum;
};

struct run {
	struct crew crew;
	struct load load;
	struct shared *shared;
	struct log_file *logs; /* one a port */
	struct log_counts counts;
	struct backlog backlog; /* since the last edge */
	double warmup, duration, drain;
};

/* The counters at an edge of the window. */
struct edge {
	uint64_t ns;
	unsigned long delivered, accepted;
	uint64_t cpu_ns; /* of parent and generators */
};

/* The ports and logs that argv gives. */
struct given {
	unsigned int nports, nlogs;
	uint16_t ports[MAX_PORTS];
	const char *logs[MAX_PORTS];
};

static void usage(void)
{
	fputs("usage: fscale-smtp-load --port PORT --log FILE [--port PORT --log FILE]... [OPTION]...\n"
	      "  --port PORT          port of an Exim daemon on loopback\n"
	      "  --log FILE           main log of this daemon\n"
	      "  --clients N          SMTP clients, all processes together (4)\n"
	      "  --processes N        processes that run the clients, at most one per client (1)\n"
	      "  --boxes N            mail boxes per client (4)\n"
	      "  --per-connection N   messages per connection (10)\n"
	      "  --backlog N          most messages that are accepted and not yet delivered (8)\n"
	      "  --size BYTES         size of a message's body (20)\n"
	      "  --seed N             random seed (1)\n"
	      "  --warmup SEC         untimed seconds (1)\n"
	      "  --duration SEC       timed seconds (5)\n"
	      "  --drain SEC          longest wait for deliveries after the window (30)\n",
	      stderr);
	exit(2);
}

static void take_port(void *to, const char *text)
{
	struct given *given = to;

	if (given->nports == MAX_PORTS)
		usage();
	given->ports[given->nports++] = (uint16_t)number("port", text, 1, 65535);
}

static void take_log(void *to, const char *text)
{
	struct given *given = to;

	if (given->nlogs == MAX_PORTS)
		usage();
	given->logs[given->nlogs++] = text;
}

static void parse(struct run *run, int argc, char **argv)
{
	static struct given given;
	struct load *load = &run->load;
	const struct option_spec specs[] = {
		{ .name = "port", .take = take_port, .to = &given },
		{ .name = "log", .take = take_log, .to = &given },
		{ .name = "clients", .count = &load->clients, .least = 1, .most = 100000 },
		{ .name = "processes", .count = &load->processes, .least = 1, .most = 4096 },
		{ .name = "boxes", .count = &load->boxes, .least = 1, .most = 100000 },
		{ .name = "per-connection", .count = &load->per_connection, .least = 1,
		  .most = 1000000 },
		{ .name = "backlog", .count = &load->backlog, .least = 1, .most = 1000000 },
		{ .name = "size", .count = &load->size, .least = 1, .most = 10000 },
		{ .name = "seed", .seed = &load->seed },
		{ .name = "warmup", .seconds = &run->warmup },
		{ .name = "duration", .seconds = &run->duration },
		{ .name = "drain", .seconds = &run->drain },
	};
	unsigned int i;

	*load = (struct load){ .ports = given.ports, .clients = 4, .processes = 1, .boxes = 4,
			       .per_connection = 10, .backlog = 8, .size = 20, .seed = 1 };
	run->warmup = 1;
	run->duration = 5;
	run->drain = 30;
	options_parse(specs, sizeof(specs) / sizeof(*specs), argc, argv, usage);
	load->nports = given.nports;
	if (!given.nports || given.nlogs != given.nports || load->processes > load->clients)
		usage();
	run->logs = calloc(given.nlogs, sizeof(*run->logs));
	if (!run->logs) {
		fputs("not enough memory for the log files\n", stderr);
		exit(1);
	}
	for (i = 0; i < given.nlogs; i++) {
		if (log_open(&run->logs[i], given.logs[i])) {
			fprintf(stderr, "cannot open the log %s: %s\n", given.logs[i],
				strerror(errno));
			exit(1);
		}
	}
}

static int work(void *context, unsigned int id)
{
	struct run *run = context;

	return generate(&run->load, run->shared, id);
}

static const char *error_of(void *context, unsigned int id)
{
	struct run *run = context;

	return run->shared->generator[id].error;
}

static unsigned long accepted(const struct run *run)
{
	return atomic_load(&run->shared->accepted);
}

/* Read the logs and look after the generators; -1 with an error that ends the run. */
static int poll_all(struct run *run)
{
	struct crew *crew = &run->crew;
	size_t length;
	unsigned int i;

	for (i = 0; i < run->load.nports; i++) {
		if (log_follow(&run->logs[i], &run->counts)) {
			snprintf(crew->error, sizeof(crew->error), "cannot read a log of Exim: %s",
				 strerror(errno));
			return -1;
		}
	}
	atomic_store(&run->shared->delivered, run->counts.delivered);
	if (run->counts.trouble) {
		/* Connections that break are the first that Exim logs of a generator that ends. */
		nap(SETTLE_NS);
		crew_look(crew);
		length = strlen(crew->error);
		snprintf(crew->error + length, sizeof(crew->error) - length, "%sExim's log: %s",
			 length ? "; " : "", run->counts.first);
		return -1;
	}
	if (crew_look(crew))
		return -1;
	if (crew->ended && atomic_load(&run->shared->phase) == PHASE_RUN) {
		snprintf(crew->error, sizeof(crew->error), "a generator ended before the window did");
		return -1;
	}
	return 0;
}

static int poll_backlog(void *context)
{
	struct run *run = context;
	unsigned long waiting;

	if (poll_all(run))
		return -1;
	/* A delivery may be logged before its client has read the 250. */
	waiting = accepted(run);
	waiting -= waiting < run->counts.delivered ? waiting : run->counts.delivered;
	run->backlog.samples++;
	run->backlog.empty += waiting == 0;
	run->backlog.sum += (double)waiting;
	return 0;
}

static int edge(struct run *run, struct edge *edge, const char *name)
{
	unsigned int i;

	if (poll_all(run))
		return -1;
	edge->ns = now_ns();
	edge->delivered = run->counts.delivered;
	edge->accepted = accepted(run);
	edge->cpu_ns = own_cpu_ns();
	for (i = 0; i < run->load.processes; i++)
		edge->cpu_ns += atomic_load(&run->shared->generator[i].cpu_ns);
	print_line(name);
	return 0;
}

/* After the window: clients finish their message, Exim delivers what it has accepted. */
static int drain(struct run *run)
{
	struct crew *crew = &run->crew;
	uint64_t end = now_ns() + (uint64_t)(run->drain * 1e9);

	atomic_store(&run->shared->phase, PHASE_DRAIN);
	while (crew->ended < crew->size || run->counts.delivered < accepted(run)) {
		if (now_ns() > end) {
			snprintf(crew->error, sizeof(crew->error),
				 "Exim accepted %lu messages and delivered %lu by %.0f s after the window",
				 accepted(run), run->counts.delivered, run->drain);
			return -1;
		}
		nap(POLL_NS);
		if (poll_all(run))
			return -1;
	}
	return 0;
}

static int measure(struct run *run, struct edge *a, struct edge *b)
{
	struct crew *crew = &run->crew;

	if (crew_start(crew))
		return -1;
	if (crew_until(crew, now_ns() + (uint64_t)(run->warmup * 1e9), POLL_NS, poll_backlog))
		return -1;
	run->backlog = (struct backlog){ 0 };
	if (edge(run, a, "start"))
		return -1;
	if (crew_until(crew, a->ns + (uint64_t)(run->duration * 1e9), POLL_NS, poll_backlog))
		return -1;
	if (edge(run, b, "end") || drain(run))
		return -1;
	if (b->delivered == a->delivered) {
		snprintf(crew->error, sizeof(crew->error),
			 "Exim delivered no message in the window; use a longer --duration");
		return -1;
	}
	return 0;
}

static void print(const struct run *run, const struct edge *a, const struct edge *b)
{
	const struct backlog *backlog = &run->backlog;
	double window = (double)(b->ns - a->ns) / 1e9;

	printf("{\"seconds\": %.9f, \"start_ns\": %llu, \"end_ns\": %llu, ", window,
	       (unsigned long long)a->ns, (unsigned long long)b->ns);
	printf("\"delivered\": %lu, \"accepted\": %lu, ", b->delivered - a->delivered,
	       b->accepted - a->accepted);
	printf("\"delivered_in_all\": %lu, \"accepted_in_all\": %lu, \"received_in_all\": %lu, ",
	       run->counts.delivered, accepted(run), run->counts.received);
	printf("\"generator_cpu_seconds\": %.6f, \"processes\": %u, ",
	       (double)(b->cpu_ns - a->cpu_ns) / 1e9, run->load.processes);
	printf("\"backlog_mean\": %.3f, \"backlog_empty_share\": %.4f, \"error\": ",
	       backlog->samples ? backlog->sum / (double)backlog->samples : 0.0,
	       backlog->samples ? (double)backlog->empty / (double)backlog->samples : 0.0);
	crew_print_error(&run->crew);
	puts("}");
}

int main(int argc, char **argv)
{
	struct run run = { 0 };
	struct edge a = { 0 }, b = { 0 };
	int failed;

	parse(&run, argc, argv);
	signal(SIGPIPE, SIG_IGN);
	run.shared = shared_alloc(sizeof(*run.shared) +
				  run.load.processes * sizeof(struct generator));
	run.crew = (struct crew){ .name = "generator", .size = run.load.processes, .run = &run,
				  .work = work, .error_of = error_of };
	failed = measure(&run, &a, &b);
	atomic_store(&run.shared->phase, PHASE_ABORT);
	crew_kill(&run.crew);
	print(&run, &a, &b);
	free(run.logs);
	return failed ? 1 : 0;
}
