// SPDX-License-Identifier: GPL-2.0-only
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counted.h"
#include "counters.h"
#include "crew.h"
#include "latency.h"
#include "request.h"
#include "slices.h"
#include "stock.h"
#include "window.h"

/* All memory that the parent needs for sure; false when there is none. */
static bool allocate(struct bench *b, const struct config *cfg)
{
	*b = (struct bench){
		.cfg = cfg,
		.processes = cfg->workers + (cfg->workload->background_run ? 1 : 0),
	};
	b->shm = shm_create(b->processes);
	b->pids = calloc(b->processes, sizeof(*b->pids));
	b->result.usage = usage_alloc(b->processes);
	b->result.executed = calloc(b->processes, sizeof(uint64_t));
	return b->shm && b->pids && b->result.usage && b->result.executed;
}

static enum step join_cgroup(struct bench *b)
{
	char path[4096], pid[16];
	int fd, length = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());

	if (!b->cfg->cgroup)
		return STEP_OK;
	snprintf(path, sizeof(path), "%s/cgroup.procs", b->cfg->cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return bench_fail(b, "open", path);
	if (write(fd, pid, (size_t)length) != length)
		return bench_fail(b, "write", path);
	close(fd);
	return STEP_OK;
}

/* Tell who attaches to us that set-up is done, and wait for the word. */
static enum step synchronize(struct bench *b)
{
	enum step step;
	bool end;

	if (b->cfg->sync_read < 0)
		return STEP_OK;
	step = request_answer(b, "ready\n");
	if (step || b->cfg->slice)
		return step; /* slices are asked for one by one */
	step = request_wait(b, &end);
	if (step || !end)
		return step;
	errno = EPIPE;
	return bench_fail(b, "read", "--sync-fds");
}

static enum step set_up(struct bench *b)
{
	const struct workload *wl = b->cfg->workload;
	enum step step = crew_command(b, CMD_SETUP);

	if (step == STEP_OK)
		step = crew_command(b, CMD_SYNC);
	if (step == STEP_OK && b->cfg->keep)
		step = stock_exactly(b, b->cfg->keep);
	else if (step == STEP_OK && wl->stock && !b->cfg->windows)
		step = stock_pilot(b);
	return step;
}

static enum step measure(struct bench *b)
{
	const struct config *cfg = b->cfg;
	enum step step;
	double length;

	if (cfg->slice)
		return slices_measure(b);
	if (cfg->windows)
		return counted_measure(b);
	if (cfg->workload->stock && !cfg->keep)
		return stock_measure(b);
	step = window_run(b, cfg->warmup, cfg->duration, &length);
	if (step == STEP_OK && !b->result.nwindows)
		b->result.status = STATUS_INVALID;
	return step;
}

static void check_pinned(struct bench *b)
{
	int id = crew_unpinned(b);

	if (id < 0)
		return;
	b->result.status = STATUS_INVALID;
	snprintf(b->result.reason, sizeof(b->result.reason),
		 "worker %d is no longer pinned to CPU %d; the kernel unpins it when the CPU goes offline", id,
		 config_cpu(b->cfg, (unsigned int)id));
}

/* One worker may starve behind the others, which is a finding; all of them have measured nothing. */
static void check_worked(struct bench *b)
{
	for (unsigned int id = 0; id < b->cfg->workers; id++)
		if (result_ops(&b->result, id))
			return;
	b->result.status = STATUS_INVALID;
	snprintf(b->result.reason, sizeof(b->result.reason),
		 "no operation completed in the timed window; use a longer --duration, or stop other processes");
}

/* Workers that have set up have said who they are. */
static enum step account(struct bench *b)
{
	const struct config *cfg = b->cfg;
	pid_t *tids = calloc(b->processes, sizeof(*tids));
	const char *path;

	if (!tids)
		return bench_fail(b, "calloc", NULL);
	for (unsigned int id = 0; id < b->processes; id++)
		tids[id] = atomic_load(&b->shm->slots[id].tid);
	b->accounting = accounting_open(cfg->cpus, cfg->ncpus, b->pids, tids, b->processes,
					cfg->cgroup, &path);
	free(tids);
	return b->accounting ? STEP_OK : bench_fail(b, "open", path);
}

static enum step run(struct bench *b)
{
	const struct config *cfg = b->cfg;
	uint64_t begun = now_ns();
	enum step step;

	step = join_cgroup(b);
	if (step == STEP_OK && cfg->workload->stock)
		step = stock_limit(b);
	if (step == STEP_OK && cfg->latency)
		step = latency_prepare(b);
	if (step)
		return step;
	b->shm->in_turns = cfg->slice > 0;
	if (cfg->windows)
		counted_prepare(b);
	step = crew_start(b);
	if (step)
		return step;
	step = set_up(b);
	b->result.setup_seconds = (double)(now_ns() - begun) / 1e9;
	if (step == STEP_OK)
		step = account(b);
	if (step == STEP_OK)
		step = synchronize(b);
	if (step == STEP_OK)
		step = counters_begin(b);
	if (step == STEP_OK)
		step = measure(b);
	if (step == STEP_OK)
		step = counters_end(b);
	if (step == STEP_OK && b->result.status == STATUS_OK)
		check_worked(b);
	if (step == STEP_OK)
		check_pinned(b);
	return step;
}

static void conclude(struct bench *b, enum step step)
{
	struct result *r = &b->result;
	const struct error_record *error = &b->shm->error;

	for (unsigned int i = 0; i < b->processes; i++)
		r->executed[i] = atomic_load(&b->shm->slots[i].ops);
	if (step == STEP_INTERRUPTED) {
		r->status = STATUS_INTERRUPTED;
		r->end = END_INTERRUPTED;
		snprintf(r->reason, sizeof(r->reason), "stopped by a signal");
	} else if (step == STEP_FAILED) {
		r->status = STATUS_ERROR;
		r->end = error->code == ENOSPC || error->code == EDQUOT ? END_NO_SPACE : END_ERROR;
		snprintf(r->reason, sizeof(r->reason), "%s", error->message);
	}
}

static int exit_code(const struct bench *b)
{
	switch (b->result.status) {
	case STATUS_OK:
		return EXIT_GOOD;
	case STATUS_INTERRUPTED:
		return EXIT_INTERRUPTED;
	case STATUS_ERROR:
		return b->shm->error.unsupported ? EXIT_SKIPPED : EXIT_FAILED;
	case STATUS_INVALID:
		break;
	}
	return EXIT_FAILED;
}

int bench_run(const struct config *cfg, struct bench *b)
{
	enum step step;
	bool gone;

	if (!allocate(b, cfg)) {
		fputs("fscale-bench: out of memory\n", stderr);
		exit(EXIT_FAILED);
	}
	step = run(b);
	gone = crew_end(b, step != STEP_OK);
	if (cfg->windows)
		counted_finish();
	if (step == STEP_OK && atomic_load(&b->shm->error.complete))
		step = STEP_FAILED;
	if (step == STEP_OK && cfg->latency)
		step = latency_write(b);
	conclude(b, step);
	if (!gone) {
		size_t used = strlen(b->result.reason);

		snprintf(b->result.reason + used, sizeof(b->result.reason) - used,
			 "%s%u workers are stuck in the kernel and cannot be killed; the kernel log may say where", used ? "; " : "",
			 b->alive);
		if (b->result.status != STATUS_INTERRUPTED)
			b->result.status = STATUS_ERROR;
		b->result.end = b->result.end == END_INTERRUPTED ? END_INTERRUPTED : END_ERROR;
	}
	return exit_code(b);
}
