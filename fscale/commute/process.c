// SPDX-License-Identifier: GPL-2.0-only
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "call.h"

/* Actors of one process with two threads. */
#define THREADS 2

static const int slots[] = { 0, 1, ANY, ANY + 1 };
static const char *const slot_names[] = { "0", "1", "any", "any" };

static bool of_process(const struct line *line, const char *kind, int process)
{
	return !strcmp(line->word[0], kind) && number(line->word[1]) == process;
}

/* fd PROCESS NUMBER file PATH OFFSET | fd PROCESS NUMBER pipe PIPE END */
static void make_descriptor(const struct line *line)
{
	int wanted = number(line->word[2]), fd;

	if (line->word[3][0] == 'p') {
		fd = board->pipes[number(line->word[4])][line->word[5][0] == 'w'];
		if (dup2(fd, wanted) < 0)
			die("dup2");
		return;
	}
	fd = open(line->word[4], O_RDWR);
	if (fd < 0 || lseek(fd, number(line->word[5]) * BLOCK, SEEK_SET) < 0)
		die(line->word[4]);
	if (fd != wanted && (dup2(fd, wanted) < 0 || close(fd)))
		die("dup2");
}

/* map PROCESS ADDRESS PROTECTION anonymous VALUE | map PROCESS ADDRESS PROTECTION file PATH PAGE */
static void make_mapping(const struct line *line)
{
	char *at = call_address(line->word[2]);
	int protection = PROT_READ | PROT_WRITE;
	struct stat st;
	int fd;

	if (line->word[4][0] == 'a') {
		if (mmap(at, BLOCK, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
		    at)
			die("mmap");
		if (number(line->word[5]))
			memset(at, number(line->word[5]), BLOCK);
	} else {
		off_t page = number(line->word[6]) * BLOCK;

		fd = open(line->word[5], O_RDWR);
		if (fd < 0 || fstat(fd, &st) ||
		    mmap(at, BLOCK, protection, MAP_SHARED | MAP_FIXED, fd, page) != at || close(fd))
			die(line->word[5]);
		if (page < st.st_size)
			(void)*(volatile char *)at;
	}
	if (mprotect(at, BLOCK, call_protection(line->word[3])))
		die("mprotect");
}

static void make(int process)
{
	for (unsigned int i = 0; i < board->test.n; i++) {
		const struct line *line = &board->test.lines[i];

		if (of_process(line, "fd", process))
			make_descriptor(line);
		else if (of_process(line, "map", process))
			make_mapping(line);
	}
}

static void show_descriptor(int fd)
{
	char block[BLOCK];
	off_t offset;

	call_say_attributes(fd);
	offset = lseek(fd, 0, SEEK_CUR);
	if (offset < 0)
		return;
	for (off_t at = 0; pread(fd, block, BLOCK, at) == BLOCK; at += BLOCK)
		say(" %d", block_value(block));
	say(" @%jd", (intmax_t)offset / BLOCK);
}

static void show(int process)
{
	for (size_t i = 0; i < LENGTH(slots); i++) {
		if (fcntl(slots[i], F_GETFD) < 0)
			continue;
		say("fd %d %s", process, slot_names[i]);
		show_descriptor(slots[i]);
		say("\n");
	}
	for (int i = 0; i < 2; i++) {
		const char word[] = { (char)('0' + i), 0 };

		say("memory %d %d", process, i);
		call_say_memory(call_address(word));
		say("\n");
	}
}

static void drop(void)
{
	for (size_t i = 0; i < LENGTH(slots); i++)
		close(slots[i]);
	if (munmap(call_address("0"), BLOCK) || munmap(call_address("1"), BLOCK))
		die("munmap");
}

static void act(struct actor *actor)
{
	switch (actor->request) {
	case MAKE:
		make(actor->process);
		break;
	case CALL:
		say("%c", "ab"[actor->side]);
		call_run(&board->test.calls[actor->side]);
		say("\n");
		break;
	case SHOW:
		show(actor->process);
		break;
	case DROP:
		drop();
		break;
	}
}

static void wait_for(sem_t *turn)
{
	while (sem_wait(turn)) {
		if (errno != EINTR)
			die("sem_wait");
	}
}

static void give(sem_t *turn)
{
	if (sem_post(turn))
		die("sem_post");
}

void process_pin(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		die("sched_setaffinity");
}

static void *run_actor(void *arg)
{
	struct actor *actor = arg;

	if (board->tracing)
		process_pin(actor->side);
	for (;;) {
		wait_for(&actor->turn);
		act(actor);
		give(&board->turn);
	}
	return NULL;
}

static void start(struct actor *actor, bool threads)
{
	pthread_t thread;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || close(0) || close(1))
		die("the start of a process");
	if (signal(SIGCHLD, SIG_DFL) == SIG_ERR)
		die("signal");
	call_open();
	if (threads && pthread_create(&thread, NULL, run_actor, actor + 1))
		die("pthread_create");
	run_actor(actor);
}

void process_start_all(void)
{
	for (size_t i = 0; i < LENGTH(board->actors); i++) {
		struct actor *actor = &board->actors[i];

		actor->side = i % 2;
		actor->process = i == 1;
		if (sem_init(&actor->turn, true, 0))
			die("sem_init");
	}
	start(&board->actors[0], false);
	start(&board->actors[1], false);
	start(&board->actors[THREADS], true);
}

struct actor *process_actor(int side)
{
	return &board->actors[(board->test.shared ? THREADS : 0) + side];
}

void process_ask(struct actor *actor, enum request request)
{
	actor->request = request;
	give(&actor->turn);
	wait_for(&board->turn);
}
