// SPDX-License-Identifier: GPL-2.0-only
#include "call.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../microbench/core/roi.h"

/* Neighbours would be merged into one mapping, and share more than two mappings have to. */
#define ADDRESS 0x500000000000ull
#define DISTANCE 0x10000ull

static __thread sigjmp_buf fault;
static __thread char block[BLOCK];

/* The value of a system call; only its own accesses of memory count. */
#define INSIDE(call)				\
	({					\
		ROI_TELL(ROI_CALL);		\
		long value_ = (long)(call);	\
		ROI_TELL(ROI_RETURN);		\
		value_;				\
	})

static void faulted(int signal)
{
	siglongjmp(fault, signal);
}

void call_open(void)
{
	struct sigaction action = { .sa_handler = faulted, .sa_flags = SA_NODEFER };
	char *neighbour = (char *)ADDRESS + 8 * DISTANCE;

	if (sigaction(SIGSEGV, &action, NULL) || sigaction(SIGBUS, &action, NULL))
		die("sigaction");
	/* As in any process that lives on, page tables are there, whatever a test unmaps. */
	if (mmap(neighbour, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) != neighbour)
		die("mmap");
	*neighbour = 1;
}

char *call_address(const char *word)
{
	return (char *)(ADDRESS + (uint64_t)number(word) * DISTANCE);
}

int call_protection(const char *word)
{
	return word[1] == 'w' ? PROT_READ | PROT_WRITE : PROT_READ;
}

static void say_result(long result)
{
	say(" %s", result < 0 ? strerrorname_np(errno) : "ok");
}

static void say_attributes(const struct stat *st)
{
	if (S_ISFIFO(st->st_mode))
		say(" pipe #%ju", (uintmax_t)st->st_ino);
	else
		say(" stat #%ju %ju %jd", (uintmax_t)st->st_ino, (uintmax_t)st->st_nlink,
		    (intmax_t)st->st_size / BLOCK);
}

void call_say_attributes(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		say_result(-1);
	else
		say_attributes(&st);
}

static void say_loaded(long bytes)
{
	if (bytes < 0)
		say_result(bytes);
	else if (!bytes)
		say(" eof");
	else
		say(" value %d", bytes == BLOCK ? block_value(block) : -1);
}

/* The signal ended the call, if one was executed. */
static void say_signal(int signal)
{
	ROI_TELL(ROI_RETURN);
	say(" SIG%s", sigabbrev_np(signal));
}

void call_say_memory(char *at)
{
	volatile char *first = at;
	int signal = sigsetjmp(fault, 0);

	if (signal) {
		say_signal(signal);
		return;
	}
	(void)*first;
	say(" value %d", block_value(at));
	if (sigsetjmp(fault, 0)) {
		say(" r");
		return;
	}
	*first = *first;
	say(" rw");
}

static void run_open(const struct line *call)
{
	static const struct { const char *name; int flag; } flags[] = {
		{ "creat", O_CREAT }, { "excl", O_EXCL }, { "trunc", O_TRUNC },
	};
	const char *path = call->word[1], *given = call->word[2];
	bool any = strstr(given, "anyfd");
	int flag = O_RDWR;
	long fd;

	for (size_t i = 0; i < LENGTH(flags); i++)
		flag |= strstr(given, flags[i].name) ? flags[i].flag : 0;
	fd = INSIDE(open(path, flag, 0600));
	if (fd < 0) {
		say_result(fd);
	} else if (any) {
		/* Linux gives the lowest one. The test is told that of a system that gives another. */
		if (!board->tracing && (dup2((int)fd, ANY + call->side) < 0 || close((int)fd)))
			die("dup2");
		say(" fd any");
	} else {
		say(" fd %ld", fd);
	}
}

static void run_link(const struct line *call)
{
	say_result(INSIDE(link(call->word[1], call->word[2])));
}

static void run_unlink(const struct line *call)
{
	say_result(INSIDE(unlink(call->word[1])));
}

static void run_rename(const struct line *call)
{
	say_result(INSIDE(rename(call->word[1], call->word[2])));
}

static void run_stat(const struct line *call)
{
	struct stat st;

	if (INSIDE(stat(call->word[1], &st)))
		say_result(-1);
	else
		say_attributes(&st);
}

static void run_fstat(const struct line *call)
{
	struct stat st;

	/* The C library's fstat() is another system call. */
	if (INSIDE(syscall(SYS_fstat, number(call->word[1]), &st)))
		say_result(-1);
	else
		say_attributes(&st);
}

static void run_lseek(const struct line *call)
{
	char from = call->word[2][0];
	int whence = from == 's' ? SEEK_SET : from == 'c' ? SEEK_CUR : SEEK_END;
	long offset = INSIDE(lseek(number(call->word[1]), number(call->word[3]) * BLOCK, whence));

	if (offset < 0)
		say_result(offset);
	else
		say(" offset %ld", offset / BLOCK);
}

static void run_close(const struct line *call)
{
	say_result(INSIDE(close(number(call->word[1]))));
}

static void run_pipe(const struct line *call)
{
	int fds[2];

	(void)call;
	if (INSIDE(pipe(fds)))
		say_result(-1);
	else
		say(" fds %d %d", fds[0], fds[1]);
}

static void run_read(const struct line *call)
{
	say_loaded(INSIDE(read(number(call->word[1]), block, BLOCK)));
}

static void run_pread(const struct line *call)
{
	say_loaded(INSIDE(pread(number(call->word[1]), block, BLOCK, number(call->word[2]) * BLOCK)));
}

static void run_write(const struct line *call)
{
	memset(block, number(call->word[2]), BLOCK);
	say_result(INSIDE(write(number(call->word[1]), block, BLOCK)));
}

static void run_pwrite(const struct line *call)
{
	memset(block, number(call->word[3]), BLOCK);
	say_result(INSIDE(
		pwrite(number(call->word[1]), block, BLOCK, number(call->word[2]) * BLOCK)));
}

static void run_mmap(const struct line *call)
{
	bool file = call->n > 3;
	int flags = MAP_FIXED | (file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
	int fd = file ? number(call->word[3]) : -1;
	off_t offset = file ? number(call->word[4]) * BLOCK : 0;
	long at = INSIDE(mmap(call_address(call->word[1]), BLOCK, call_protection(call->word[2]),
			      flags, fd, offset));

	say_result(at == -1 ? -1 : 0);
}

static void run_munmap(const struct line *call)
{
	say_result(INSIDE(munmap(call_address(call->word[1]), BLOCK)));
}

static void run_mprotect(const struct line *call)
{
	say_result(INSIDE(
		mprotect(call_address(call->word[1]), BLOCK, call_protection(call->word[2]))));
}

static void run_memread(const struct line *call)
{
	volatile char *at = call_address(call->word[1]);
	int signal = sigsetjmp(fault, 0);

	if (signal)
		say_signal(signal);
	else
		say(" value %ld", INSIDE(*at));
}

static void run_memwrite(const struct line *call)
{
	volatile char *at = call_address(call->word[1]);
	int signal = sigsetjmp(fault, 0);

	if (signal) {
		say_signal(signal);
		return;
	}
	INSIDE(*at = (char)number(call->word[2]));
	memset((char *)at, number(call->word[2]), BLOCK);
	say(" ok");
}

void call_run(const struct line *call)
{
	static const struct {
		const char *name;
		void (*run)(const struct line *call);
	} calls[] = {
		{ "open", run_open },		{ "link", run_link },
		{ "unlink", run_unlink },	{ "rename", run_rename },
		{ "stat", run_stat },		{ "fstat", run_fstat },
		{ "lseek", run_lseek },		{ "close", run_close },
		{ "pipe", run_pipe },		{ "read", run_read },
		{ "write", run_write },		{ "pread", run_pread },
		{ "pwrite", run_pwrite },	{ "mmap", run_mmap },
		{ "munmap", run_munmap },	{ "mprotect", run_mprotect },
		{ "memread", run_memread },	{ "memwrite", run_memwrite },
	};

	for (size_t i = 0; i < LENGTH(calls); i++) {
		if (!strcmp(calls[i].name, call->word[0])) {
			calls[i].run(call);
			return;
		}
	}
	die(call->word[0]);
}
