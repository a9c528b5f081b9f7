// SPDX-License-Identifier: GPL-2.0-only
#include "output.h"

#include "latency.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const ends[] = {
	[END_TIME] = "time", [END_EXHAUSTED] = "exhausted", [END_NO_SPACE] = "no_space",
	[END_ERROR] = "error", [END_INTERRUPTED] = "interrupted",
};
static const char *const statuses[] = {
	[STATUS_OK] = "ok", [STATUS_INVALID] = "invalid", [STATUS_ERROR] = "error",
	[STATUS_INTERRUPTED] = "interrupted",
};
static const char *const bounds[] = {
	[BOUND_PILOT] = "pilot", [BOUND_SPACE] = "space", [BOUND_INODES] = "inodes",
	[BOUND_MAXIMUM] = "maximum",
};

static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static double rate(const struct result *r, uint64_t ops)
{
	return r->seconds > 0 ? (double)ops / r->seconds : 0;
}

static void set_choice(json_t *object, enum common which, unsigned int choice)
{
	const struct option_desc *option = &common_options[which];

	json_object_set_new(object, option->name, json_string(option->choices[choice]));
}

static json_t *options(const struct config *cfg)
{
	const struct option_desc *desc = cfg->workload->options;
	json_t *object = json_object();

	for (unsigned int i = 0; desc && desc[i].name; i++)
		json_object_set_new(object, desc[i].name,
				    desc[i].choices ? json_string(cfg->options[i].text) :
						      json_integer(cfg->options[i].number));
	if (cfg->crew != CREW_PROCESSES)
		set_choice(object, COMMON_WORKERS, cfg->crew);
	if (cfg->rate) {
		json_object_set_new(object, common_options[COMMON_RATE].name, integer(cfg->rate));
		set_choice(object, COMMON_ARRIVAL, cfg->arrival);
	}
	return object;
}

static json_t *windows(const struct bench *b)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < b->result.nwindows; i++) {
		const struct window *win = &b->result.windows[i];
		json_t *ops = json_array();

		for (unsigned int id = 0; id < b->cfg->workers; id++)
			json_array_append_new(ops, integer(win->ops[id]));
		json_array_append_new(array, json_pack("{s:o, s:f, s:o, s:s}", "start_ns",
						       integer(win->start_ns), "seconds", win->seconds,
						       "ops", ops, "end", ends[win->end]));
	}
	return array;
}

/* The clock gives the CPU time exactly, the ticks how it divides into user and system. */
static json_t *worker(const struct bench *b, unsigned int id)
{
	const struct worker_usage *usage = &b->result.usage->workers[id];
	double total = (double)usage->ns / 1e9;
	uint64_t ticks = usage->user + usage->system;
	double user = ticks ? total * (double)usage->user / (double)ticks : 0;

	return json_pack("{s:i, s:i, s:o, s:f, s:f, s:o, s:o}", "id", (int)id, "cpu",
			 config_cpu(b->cfg, id), "ops", integer(result_ops(&b->result, id)),
			 "user_seconds", user, "system_seconds", total - user, "voluntary_switches",
			 integer(usage->voluntary), "involuntary_switches",
			 integer(usage->involuntary));
}

static json_t *workers(const struct bench *b)
{
	json_t *array = json_array();

	for (unsigned int id = 0; id < b->cfg->workers; id++)
		json_array_append_new(array, worker(b, id));
	return array;
}

static json_t *background(const struct bench *b)
{
	unsigned int id = b->cfg->workers;
	uint64_t ops;

	if (!b->cfg->workload->background_run)
		return json_null();
	ops = result_ops(&b->result, id);
	return json_pack("{s:i, s:o, s:f}", "cpu", config_cpu(b->cfg, id), "ops", integer(ops),
			 "ops_per_second", rate(&b->result, ops));
}

static json_t *intervals(const struct result *r)
{
	json_t *seconds = json_array(), *ops = json_array();

	for (unsigned int i = 0; i < r->nintervals; i++) {
		json_array_append_new(seconds, json_real(r->interval_seconds[i]));
		json_array_append_new(ops, integer(r->interval_ops[i]));
	}
	return json_pack("{s:o, s:o}", "seconds", seconds, "ops", ops);
}

static json_t *cpu_times(const double *s)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "user", s[CPU_USER], "system",
			 s[CPU_SYSTEM], "idle", s[CPU_IDLE], "iowait", s[CPU_IOWAIT], "irq",
			 s[CPU_IRQ], "softirq", s[CPU_SOFTIRQ], "steal", s[CPU_STEAL]);
}

static json_t *stock(const struct bench *b)
{
	const struct stock *s = &b->result.stock;

	if (!b->cfg->workload->stock)
		return json_null();
	return json_pack("{s:s, s:b, s:o, s:o, s:s, s:o, s:i}", "unit", b->cfg->workload->stock->unit,
			 "steady", b->cfg->keep > 0, "per_worker", integer(s->per_worker), "wanted",
			 integer(s->wanted), "bound", bounds[s->bound], "pilot_ops_per_second",
			 s->rate > 0 ? json_real(s->rate) : json_null(), "restocks",
			 (int)s->restocks);
}

static json_t *latency(const struct bench *b)
{
	json_t *files, *samples, *dropped;

	if (!b->cfg->latency || !b->latencies)
		return json_null();
	files = json_array();
	samples = json_array();
	dropped = json_array();
	for (unsigned int id = 0; id < b->cfg->workers; id++) {
		uint64_t ops = result_ops(&b->result, id), kept = latency_samples(b, id);

		json_array_append_new(files, json_sprintf("worker-%u.hist", id));
		json_array_append_new(samples, integer(kept));
		json_array_append_new(dropped, integer(ops > kept ? ops - kept : 0));
	}
	return json_pack("{s:o, s:o, s:o, s:o}", "files", files, "samples", samples, "dropped", dropped,
			 "turns", b->cfg->slice ? json_string(LATENCY_TURNS) : json_null());
}

static json_t *counters(const struct bench *b)
{
	json_t *object = json_object();

	for (unsigned int i = 0; i < b->cfg->ncounters; i++) {
		const char *slash = strrchr(b->cfg->counters[i], '/');

		json_object_set_new(object, slash ? slash + 1 : b->cfg->counters[i],
				    integer(b->result.counters[i]));
	}
	return object;
}

/* Paths may be any bytes; what is not UTF-8 is shown as far as it is. */
static json_t *text(const char *bytes)
{
	json_t *string = *bytes ? json_string(bytes) : NULL;

	return string ? string : json_null();
}

static json_t *error(const struct bench *b)
{
	const struct error_record *e = &b->shm->error;
	const char *name = e->code ? strerrorname_np(e->code) : NULL;
	json_t *message;

	if (b->result.status != STATUS_ERROR)
		return json_null();
	message = text(e->message);
	if (json_is_null(message))
		message = json_string(name ? name : "failed");
	return json_pack("{s:s, s:o, s:i, s:s, s:o, s:o}", "call", e->call, "path", text(e->path),
			 "errno", e->code, "name", name ? name : "", "message", message, "worker",
			 e->worker < 0 ? json_null() : json_integer(e->worker));
}

static json_t *clock_name(void)
{
	static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
	FILE *file = fopen(path, "r");
	char source[64] = "";

	if (file) {
		if (!fgets(source, sizeof(source), file))
			*source = '\0';
		fclose(file);
		source[strcspn(source, "\n")] = '\0';
	}
	return json_sprintf("CLOCK_MONOTONIC%s%s", *source ? "/" : "", source);
}

static json_t *cpus(const struct config *cfg)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < cfg->ncpus; i++)
		json_array_append_new(array, json_integer(cfg->cpus[i]));
	return array;
}

static void set_usage(const struct bench *b, json_t *object)
{
	const struct result *r = &b->result;
	double seconds[CPU_STATES], busy = 0;
	double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);

	for (unsigned int i = 0; i < CPU_STATES; i++) {
		seconds[i] = (double)r->usage->cpu[i] * tick;
		if (i != CPU_IDLE && i != CPU_IOWAIT && i != CPU_STEAL)
			busy += seconds[i];
	}
	json_object_set_new(object, "cpu", cpu_times(seconds));
	json_object_set_new(object, "cgroup_cpu_seconds",
			    b->cfg->cgroup ? json_real((double)r->usage->cgroup_us / 1e6) : json_null());
	json_object_set_new(object, "busy_cpu_seconds", json_real(busy));
}

bool output_result(const struct bench *b)
{
	const struct config *cfg = b->cfg;
	const struct result *r = &b->result;
	uint64_t ops = 0, executed = 0;
	json_t *object;
	bool good;

	for (unsigned int id = 0; id < cfg->workers; id++) {
		ops += result_ops(r, id);
		executed += r->executed[id];
	}
	object = json_pack("{s:i, s:s, s:s, s:o, s:o, s:s, s:o, s:s, s:o, s:o, s:f, s:f, s:f, s:f}",
			   "schema", 1, "workload", cfg->workload->id, "mode", mode_names[cfg->mode],
			   "options", options(cfg), "seed", integer(cfg->seed), "status",
			   statuses[r->status], "reason", text(r->reason), "end", ends[r->end], "ops",
			   integer(ops), "executed_ops", integer(executed), "seconds", r->seconds,
			   "ops_per_second", rate(r, ops), "setup_seconds",
			   r->setup_seconds, "warmup_seconds", r->warmup_seconds);
	json_object_set_new(object, "clock", clock_name());
	json_object_set_new(object, "cpus", cpus(cfg));
	json_object_set_new(object, "windows", windows(b));
	json_object_set_new(object, "workers", workers(b));
	json_object_set_new(object, "background", background(b));
	json_object_set_new(object, "intervals", intervals(r));
	set_usage(b, object);
	json_object_set_new(object, "stock", stock(b));
	json_object_set_new(object, "latency", latency(b));
	json_object_set_new(object, "backlog", cfg->rate ? integer(r->backlog) : json_null());
	json_object_set_new(object, "counters", counters(b));
	json_object_set_new(object, "error", error(b));
	good = !json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) &&
	       putchar('\n') != EOF && !fflush(stdout);
	json_decref(object);
	return good;
}
