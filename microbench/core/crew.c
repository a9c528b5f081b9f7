// SPDX-License-Identifier: GPL-2.0-only
#include "crew.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpulist.h"
#include "worker.h"

/* The longest time that an operation begun inside the window may take. */
#define HALT_NS 60000000000u
/* The same after an interrupt by the user. */
#define IMPATIENT_NS 2000000000u
/* The longest wait for a worker to exit; one in D state may never exit. */
#define END_NS 5000000000u

static void worker_init(struct bench *b, struct worker *w, unsigned int id)
{
	const struct config *cfg = b->cfg;

	*w = (struct worker){
		.id = id, .workers = cfg->workers, .cpu = config_cpu(cfg, id), .crew = cfg->crew,
		.mode = cfg->mode,
		.seed = cfg->seed, .workload = cfg->workload, .options = cfg->options,
		.dir = cfg->dir, .steady = cfg->keep > 0, .shm = b->shm, .slot = &b->shm->slots[id],
	};
	if (b->latencies && id < cfg->workers)
		w->latencies = b->latencies[id];
	w->tsc = b->ticks.tsc;
	if (id < cfg->workers)
		pace_init(&w->pace, cfg->rate, cfg->arrival, cfg->seed, id, cfg->workers_per_cpu > 1);
}

/* In a child: what the parent's caller waits for is the parent's alone. */
static void let_go_of_sync(const struct config *cfg)
{
	if (cfg->sync_read < 0)
		return;
	close(cfg->sync_read);
	close(cfg->sync_write);
}

static enum step start_processes(struct bench *b, int notify)
{
	pid_t parent = getpid();

	for (unsigned int id = 0; id < b->processes; id++) {
		pid_t pid = fork();

		if (pid < 0)
			return bench_fail(b, "fork", NULL);
		if (!pid) {
			struct worker w;

			let_go_of_sync(b->cfg);
			worker_init(b, &w, id);
			worker_process(&w, notify, parent);
		}
		b->pids[id] = pid;
		b->alive++;
	}
	return STEP_OK;
}

static enum step start_threads(struct bench *b, int notify)
{
	struct worker *workers = calloc(b->processes, sizeof(*workers));
	pid_t parent = getpid(), pid;

	if (!workers)
		return bench_fail(b, "calloc", NULL);
	for (unsigned int id = 0; id < b->processes; id++)
		worker_init(b, &workers[id], id);
	pid = fork();
	if (!pid) {
		let_go_of_sync(b->cfg);
		worker_threads(workers, b->processes, notify, parent);
	}
	free(workers);
	if (pid < 0)
		return bench_fail(b, "fork", NULL);
	for (unsigned int id = 0; id < b->processes; id++)
		b->pids[id] = pid;
	b->alive = b->processes;
	return STEP_OK;
}

enum step crew_start(struct bench *b)
{
	struct rlimit files;
	int notify = events_open();

	if (notify < 0)
		return bench_fail(b, "signalfd", NULL);
	/* Processes that workers start are the parent's to wait for when the workers are gone. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return bench_fail(b, "prctl", NULL);
	/* A writer beside many readers, and the parent, hold files open for each of them. */
	if (getrlimit(RLIMIT_NOFILE, &files))
		return bench_fail(b, "getrlimit", NULL);
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files))
		return bench_fail(b, "setrlimit", NULL);
	if (b->cfg->workload->inherit) {
		const char *failed = b->cfg->workload->inherit(b->cfg->dir);

		b->shm->error.unsupported = failed && kernel_refuses();
		if (failed)
			return bench_fail(b, failed, NULL);
	}
	return b->cfg->crew == CREW_PROCESSES ? start_processes(b, notify) : start_threads(b, notify);
}

static void record_death(struct bench *b, unsigned int id, pid_t pid, int status)
{
	char who[32], what[128];

	if (b->cfg->crew == CREW_PROCESSES)
		snprintf(who, sizeof(who), "worker %u", id);
	else
		snprintf(who, sizeof(who), "the workers' process");
	if (WIFSIGNALED(status))
		snprintf(what, sizeof(what), "%s (pid %d) was killed by signal %d (%s)", who, (int)pid,
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(what, sizeof(what), "%s (pid %d) exited with code %d", who, (int)pid,
			 WEXITSTATUS(status));
	/* If the worker recorded the reason, that came first and stays. */
	error_record(&b->shm->error, (int)id, "waitpid", NULL, NULL, 0, what);
}

/* Returns whether a worker has exited. */
static bool reap(struct bench *b, bool expected)
{
	bool gone = false;
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned int id = 0; id < b->processes; id++)
			if (b->pids[id] == pid) {
				b->pids[id] = 0;
				b->alive--;
				gone = true;
				if (!expected || status)
					record_death(b, id, pid, status);
			}
	return gone;
}

enum step crew_wait(struct bench *b, uint64_t deadline, int fd, enum event *event)
{
	*event = events_wait(deadline, fd);
	switch (*event) {
	case EVENT_CHILD:
		return reap(b, false) ? STEP_FAILED : STEP_OK;
	case EVENT_INTERRUPT:
		return STEP_INTERRUPTED;
	case EVENT_ERROR:
		return bench_fail(b, "ppoll", NULL);
	default:
		return STEP_OK;
	}
}

static bool all_arrived(const struct bench *b)
{
	for (unsigned int i = 0; i < b->processes; i++)
		if (atomic_load_explicit(&b->shm->slots[i].arrived, memory_order_acquire) !=
		    b->sequence)
			return false;
	return true;
}

static bool all_finished(const struct bench *b, unsigned int *missing)
{
	for (unsigned int i = 0; i < b->processes; i++)
		if (atomic_load_explicit(&b->shm->slots[i].finished, memory_order_acquire) !=
		    b->sequence) {
			*missing = i;
			return false;
		}
	return true;
}

static void give(struct bench *b, enum command command)
{
	b->sequence = ((b->sequence >> 4) + 1) << 4 | command;
	atomic_store_explicit(&b->shm->command, b->sequence, memory_order_release);
	syscall(SYS_futex, &b->shm->command, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

enum step crew_command(struct bench *b, enum command command)
{
	enum event event;

	atomic_store(&b->shm->exhausted, 0);
	atomic_store(&b->shm->exhausting, 0);
	atomic_store(&b->shm->timed, TIMED_NOT_YET);
	atomic_store(&b->shm->phase, PHASE_ARMED);
	give(b, command);
	while (!all_arrived(b)) {
		enum step step = crew_wait(b, NO_DEADLINE, -1, &event);

		if (step)
			return step;
	}
	return STEP_OK;
}

void crew_go(struct bench *b)
{
	atomic_store_explicit(&b->shm->phase, PHASE_RUN, memory_order_release);
	if (b->shm->tally.windows)
		syscall(SYS_futex, &b->shm->phase, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

enum step crew_halt(struct bench *b, bool patient)
{
	uint64_t deadline = now_ns() + (patient ? HALT_NS : IMPATIENT_NS);
	unsigned int missing;
	enum event event;
	char what[96];

	atomic_store_explicit(&b->shm->phase, PHASE_STOP, memory_order_release);
	while (!all_finished(b, &missing)) {
		enum step step = crew_wait(b, deadline, -1, &event);

		if (step)
			return step;
		if (event == EVENT_DEADLINE && !patient)
			return STEP_INTERRUPTED;
		if (event == EVENT_DEADLINE) {
			snprintf(what, sizeof(what), "worker %u has not returned from its last operation for %u s",
				 missing, (unsigned int)(HALT_NS / 1000000000u));
			error_record(&b->shm->error, (int)missing, "wait", NULL, NULL, ETIMEDOUT, what);
			return STEP_FAILED;
		}
	}
	return STEP_OK;
}

int crew_unpinned(const struct bench *b)
{
	int found = -1;

	for (unsigned int id = 0; id < b->processes && found < 0; id++) {
		int cpu = config_cpu(b->cfg, id);
		/* The kernel refuses a set that is smaller than its own. */
		size_t size = CPU_ALLOC_SIZE(CPU_LIST_MAX);
		cpu_set_t *set = CPU_ALLOC(CPU_LIST_MAX);

		if (!set)
			return (int)id;
		if (sched_getaffinity(atomic_load(&b->shm->slots[id].tid), size, set) || CPU_COUNT_S(size, set) != 1 ||
		    !CPU_ISSET_S((size_t)cpu, size, set))
			found = (int)id;
		CPU_FREE(set);
	}
	return found;
}

static void kill_all(const struct bench *b)
{
	for (unsigned int id = 0; id < b->processes; id++)
		if (b->pids[id])
			kill(b->pids[id], SIGKILL);
}

static void wait_all(struct bench *b)
{
	uint64_t deadline = now_ns() + END_NS;

	for (reap(b, true); b->alive && now_ns() < deadline; reap(b, true))
		events_wait(deadline, -1);
}

/* They end with the worker that started them. */
static void wait_orphans(void)
{
	uint64_t deadline = now_ns() + END_NS;

	while (waitpid(-1, NULL, WNOHANG) >= 0 && now_ns() < deadline)
		events_wait(deadline, -1);
}

bool crew_end(struct bench *b, bool kill_them)
{
	if (!kill_them) {
		give(b, CMD_QUIT);
		wait_all(b);
	}
	if (b->alive) {
		kill_all(b);
		wait_all(b);
	}
	if (!b->alive)
		wait_orphans();
	return !b->alive;
}
