// SPDX-License-Identifier: GPL-2.0-only
/*
 * The least that a loop around a system call can cost: what the microbenchmarks
 * are compared with. Usage: bare WORKLOAD DIR CPU WARMUP SECONDS
 * Prints operations, wall seconds and CPU seconds.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define PAGES 256	/* of a mapping, as by default in fault_private */

static volatile sig_atomic_t stop;
static _Alignas(4096) char buf[4096];

static void on_alarm(int sig)
{
	(void)sig;
	stop = 1;
}

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static double seconds(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void start_timer(double length)
{
	struct itimerval timer = { .it_value = {
		.tv_sec = (time_t)length,
		.tv_usec = (suseconds_t)((length - (double)(time_t)length) * 1e6),
	} };

	stop = 0;
	if (setitimer(ITIMER_REAL, &timer, NULL))
		die("setitimer");
}

static uint64_t loop_read(int fd)
{
	uint64_t ops = 0;

	for (; !stop; ops++)
		if (pread(fd, buf, sizeof(buf), 0) != sizeof(buf))
			die("pread");
	return ops;
}

static uint64_t loop_write(int fd)
{
	uint64_t ops = 0;

	for (; !stop; ops++)
		if (pwrite(fd, buf, sizeof(buf), 0) != sizeof(buf))
			die("pwrite");
	return ops;
}

static uint64_t loop_open(int unused)
{
	uint64_t ops = 0;

	(void)unused;
	for (; !stop; ops++) {
		int fd = open("0/0/0/0/0", O_RDONLY | O_CLOEXEC);

		if (fd < 0 || close(fd))
			die("open");
	}
	return ops;
}

static uint64_t loop_creat(int unused)
{
	uint64_t ops = 0;

	(void)unused;
	for (; !stop; ops++) {
		int fd = open("0/data", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

		if (fd < 0 || close(fd))
			die("open");
	}
	return ops;
}

static uint64_t loop_create_unlink(int unused)
{
	uint64_t ops = 0;

	(void)unused;
	for (; !stop; ops++) {
		int fd = open("0/new", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

		if (fd < 0 || close(fd) || unlink("0/new"))
			die("create and unlink");
	}
	return ops;
}

static uint64_t loop_lock(int fd)
{
	uint64_t ops = 0;

	for (; !stop; ops++) {
		struct flock lock = { .l_type = F_WRLCK, .l_len = 1 };

		if (fcntl(fd, F_SETLK, &lock))
			die("F_WRLCK");
		lock.l_type = F_UNLCK;
		if (fcntl(fd, F_SETLK, &lock))
			die("F_UNLCK");
	}
	return ops;
}

static uint64_t loop_fault(int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = PAGES * page;
	uint64_t ops = 0;

	while (!stop) {
		volatile char *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (start == MAP_FAILED)
			die("mmap");
		for (size_t at = 0; at < size && !stop; at += page, ops++)
			start[at] = 1;
		if (munmap((void *)start, size))
			die("munmap");
	}
	return ops;
}

static int set_up_file(void)
{
	int fd;

	if (mkdir("0", 0755))
		die("mkdir");
	fd = open("0/data", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || pwrite(fd, buf, sizeof(buf), 0) != sizeof(buf))
		die("0/data");
	return fd;
}

static int set_up_pages(void)
{
	off_t size = PAGES * sysconf(_SC_PAGESIZE);
	int fd = set_up_file();

	for (off_t at = sizeof(buf); at < size; at += sizeof(buf))
		if (pwrite(fd, buf, sizeof(buf), at) != sizeof(buf))
			die("0/data");
	return fd;
}

static int set_up_path(void)
{
	char path[] = "0/0/0/0/0";
	int fd;

	for (size_t end = 1; end < sizeof(path) - 1; end += 2) {
		path[end] = '\0';
		if (mkdir(path, 0755))
			die("mkdir");
		path[end] = '/';
	}
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0 || close(fd))
		die(path);
	return -1;
}

static const struct peer {
	const char *workload;
	int (*set_up)(void);
	uint64_t (*loop)(int fd);
} peers[] = {
	{ "DRBL", set_up_file, loop_read },
	{ "DWOL", set_up_file, loop_write },
	{ "MRPL", set_up_path, loop_open },
	{ "creat_private", set_up_file, loop_creat },
	{ "create_unlink_private", set_up_file, loop_create_unlink },
	{ "fcntl_lock_private", set_up_file, loop_lock },
	{ "fault_private", set_up_pages, loop_fault },
};

static const struct peer *find(const char *workload)
{
	for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++)
		if (!strcmp(peers[i].workload, workload))
			return &peers[i];
	fprintf(stderr, "bare: there is no loop for %s\n", workload);
	exit(2);
}

int main(int argc, char **argv)
{
	const struct peer *peer;
	double wall, cpu;
	cpu_set_t set;
	uint64_t ops;
	int fd;

	if (argc != 6) {
		fprintf(stderr, "usage: bare WORKLOAD DIR CPU WARMUP SECONDS\n");
		return 2;
	}
	peer = find(argv[1]);
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[3]), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
	if (chdir(argv[2]))
		die(argv[2]);
	if (signal(SIGALRM, on_alarm) == SIG_ERR)
		die("signal");
	fd = peer->set_up();
	start_timer(atof(argv[4]));
	peer->loop(fd);
	start_timer(atof(argv[5]));
	wall = seconds(CLOCK_MONOTONIC);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	ops = peer->loop(fd);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = seconds(CLOCK_MONOTONIC) - wall;
	printf("%llu %.9f %.9f\n", (unsigned long long)ops, wall, cpu);
	return 0;
}
