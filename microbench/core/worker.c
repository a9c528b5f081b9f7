// SPDX-License-Identifier: GPL-2.0-only
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int event_fd;

static bool is_background(const struct worker *w)
{
	return w->id == w->workers;
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

static enum outcome pin(struct worker *w)
{
	size_t size = CPU_ALLOC_SIZE((size_t)w->cpu + 1);
	cpu_set_t *set = CPU_ALLOC((size_t)w->cpu + 1);
	enum outcome outcome = OP_OK;

	if (!set)
		return worker_fail(w, "calloc", NULL);
	CPU_ZERO_S(size, set);
	CPU_SET_S((size_t)w->cpu, size, set);
	if (sched_setaffinity(0, size, set))
		outcome = worker_fail(w, "sched_setaffinity", NULL);
	CPU_FREE(set);
	return outcome;
}

/*
 * A worker that is stuck in the kernel must not hold the parent's output open:
 * whoever reads it would wait for the end of file for ever.
 */
static enum outcome let_go_of_output(struct worker *w)
{
	int fd = open("/dev/null", O_RDWR);

	if (fd < 0)
		return worker_fail(w, "open", "/dev/null");
	if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 ||
	    dup2(fd, STDERR_FILENO) < 0)
		return worker_fail(w, "dup2", "/dev/null");
	close(fd);
	return OP_OK;
}

static enum outcome begin_process(struct worker *w, pid_t parent)
{
	sigset_t none;

	/* Ctrl-C reaches the whole group; stopping is the parent's work. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL))
		return worker_fail(w, "sigprocmask", NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return worker_fail(w, "prctl", NULL);
	if (getppid() != parent)
		_exit(1);
	prctl(PR_SET_NAME, COMM_SETUP);
	if (let_go_of_output(w))
		return OP_FAILED;
	if (chdir(w->dir))
		return worker_fail(w, "chdir", w->dir);
	return OP_OK;
}

static void notify_parent(_Atomic uint32_t *word, uint32_t sequence)
{
	uint64_t one = 1;

	atomic_store_explicit(word, sequence, memory_order_release);
	if (write(event_fd, &one, sizeof(one)) != sizeof(one))
		_exit(1);
}

static uint32_t wait_command(struct worker *w, uint32_t previous)
{
	_Atomic uint32_t *word = &w->shm->command;
	uint32_t now;

	while ((now = atomic_load_explicit(word, memory_order_acquire)) == previous)
		syscall(SYS_futex, word, FUTEX_WAIT, previous, NULL, NULL, 0);
	return now;
}

static uint64_t own_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void stint_begin(struct worker *w)
{
	struct stint *stint = &w->slot->stint;

	stint->ops = ops_done(w);
	stint->cpu_ns = own_cpu_ns();
	stint->first_ns = now_ns();
}

void stint_end(struct worker *w)
{
	struct stint *stint = &w->slot->stint;

	stint->last_ns = now_ns();
	stint->cpu_ns = own_cpu_ns() - stint->cpu_ns;
	stint->ops = ops_done(w) - stint->ops;
}

/* Spinning starts all at one time; in windows by count they sleep, for a spinner looks busy. */
static void wait_at_barrier(struct worker *w)
{
	_Atomic uint32_t *phase = &w->shm->phase;

	while (atomic_load_explicit(phase, memory_order_acquire) == PHASE_ARMED) {
		if (w->shm->tally.windows)
			syscall(SYS_futex, phase, FUTEX_WAIT, PHASE_ARMED, NULL, NULL, 0);
		else
			cpu_relax();
	}
}

static enum outcome run(struct worker *w, bool pilot, uint32_t sequence)
{
	const struct workload *wl = w->workload;
	enum outcome outcome;

	notify_parent(&w->slot->arrived, sequence);
	wait_at_barrier(w);

	if (!pilot)
		prctl(PR_SET_NAME, is_background(w) ? COMM_BACKGROUND : COMM_RUN);
	if (is_background(w))
		outcome = wl->background_run(w);
	else if (w->shm->in_turns && !pilot)
		outcome = wl->run_turn(w);
	else if (w->pace.gap && !pilot)
		outcome = wl->run_open(w);
	else if (w->latencies && !pilot)
		outcome = wl->run_latency(w);
	else if (w->shm->tally.windows)
		outcome = wl->run_counted(w);
	else
		outcome = wl->run(w);
	if (outcome == OP_EXHAUSTED)
		shm_end_window(w->shm);
	prctl(PR_SET_NAME, COMM_SETUP);

	if (outcome == OP_FAILED)
		return outcome;
	if (w->pace.gap && !pilot)
		w->slot->backlog = pace_backlog(&w->pace, w->shm);
	if (pilot)
		ops_publish(w, 0);
	notify_parent(&w->slot->finished, sequence);
	return OP_OK;
}

/* CPUs that wait for one another's locks take a simulator long, and nothing is counted yet. */
static void await_turn(struct worker *w, uint32_t sequence)
{
	_Atomic uint32_t *turn = &w->slot->turn;
	uint32_t now;

	if (!w->shm->one_by_one || !w->id)
		return;
	while ((now = atomic_load_explicit(turn, memory_order_acquire)) != sequence)
		syscall(SYS_futex, turn, FUTEX_WAIT, now, NULL, NULL, 0);
}

static void pass_turn(struct worker *w, uint32_t sequence)
{
	_Atomic uint32_t *turn;

	if (!w->shm->one_by_one || w->id + 1 == w->shm->workers)
		return;
	turn = &w->shm->slots[w->id + 1].turn;
	atomic_store_explicit(turn, sequence, memory_order_release);
	syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static enum outcome set_up(struct worker *w)
{
	if (is_background(w))
		return w->workload->background_setup(w);
	return w->workload->setup ? w->workload->setup(w) : OP_OK;
}

static enum outcome fill(struct worker *w)
{
	uint64_t stock = w->shm->stock;

	if (w->workload->fill(w, stock))
		return OP_FAILED;
	w->stock = stock;
	w->next = 0;
	return OP_OK;
}

static enum outcome write_back(struct worker *w)
{
	enum outcome outcome = OP_OK;
	int fd;

	if (w->id)
		return OP_OK;
	fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return worker_fail(w, "open", ".");
	if (syncfs(fd))
		outcome = worker_fail(w, "syncfs", ".");
	close(fd);
	return outcome;
}

/* Do what the parent commands until it dismisses the worker, or something fails. */
static enum outcome obey(struct worker *w)
{
	enum outcome outcome = pin(w);
	uint32_t word = 0;

	atomic_store(&w->slot->tid, (pid_t)syscall(SYS_gettid));
	while (outcome == OP_OK) {
		word = wait_command(w, word);
		switch ((enum command)(word & 15)) {
		case CMD_SETUP:
		case CMD_FILL:
			await_turn(w, word);
			outcome = (word & 15) == CMD_SETUP ? set_up(w) : fill(w);
			pass_turn(w, word);
			break;
		case CMD_SYNC:
			outcome = write_back(w);
			break;
		case CMD_PILOT:
		case CMD_WINDOW:
			outcome = run(w, (word & 15) == CMD_PILOT, word);
			continue;
		case CMD_QUIT:
			return OP_OK;
		case CMD_NONE:
			continue;
		}
		if (outcome == OP_OK)
			notify_parent(&w->slot->arrived, word);
	}
	return outcome;
}

_Noreturn void worker_process(struct worker *w, int notify, pid_t parent)
{
	event_fd = notify;
	_exit(begin_process(w, parent) || obey(w));
}

/* A worker that fails takes all others with it: they share one exit status. */
static void *thread_main(void *argument)
{
	struct worker *w = argument;

	if (w->crew == CREW_THREADS_FILES && unshare(CLONE_FILES)) {
		worker_fail(w, "unshare", NULL);
		_exit(1);
	}
	if (obey(w))
		_exit(1);
	return NULL;
}

_Noreturn void worker_threads(struct worker *workers, unsigned int count, int notify, pid_t parent)
{
	pthread_t *threads = calloc(count, sizeof(*threads));

	event_fd = notify;
	if (!threads)
		_exit(worker_fail(workers, "calloc", NULL));
	if (begin_process(workers, parent))
		_exit(1);
	for (unsigned int id = 0; id < count; id++) {
		int rc = pthread_create(&threads[id], NULL, thread_main, &workers[id]);

		if (rc) {
			errno = rc;
			worker_fail(&workers[id], "pthread_create", NULL);
			_exit(1);
		}
	}
	for (unsigned int id = 0; id < count; id++)
		pthread_join(threads[id], NULL);
	_exit(0);
}
