// SPDX-License-Identifier: GPL-2.0-only
#include "accounting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Only a process has a clock that others may read; that of a thread is its schedstat, kept by the tick. */
struct worker_files {
	clockid_t clock;
	int stat, status;
	int schedstat;		/* -1: `clock` tells */
};

struct accounting {
	const int *cpus;
	unsigned int ncpus, workers;
	int stat, cgroup;		/* cgroup -1: none */
	char *text;
	size_t size;
	char path[512];			/* of the last error */
	struct worker_files files[];
};

/* Enough for the lines of 64k CPUs and for /proc/stat's interrupts. */
#define TEXT_SIZE (8u << 20)

__attribute__((format(printf, 2, 3)))
static int open_path(struct accounting *acc, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(acc->path, sizeof(acc->path), format, args);
	va_end(args);
	return open(acc->path, O_RDONLY | O_CLOEXEC);
}

static bool open_worker(struct accounting *acc, struct worker_files *files, pid_t pid, pid_t tid)
{
	int rc = clock_getcpuclockid(pid, &files->clock);

	if (rc) {
		errno = rc;
		return false;
	}
	files->schedstat = -1;
	if (tid != pid) {
		files->schedstat = open_path(acc, "/proc/%d/task/%d/schedstat", pid, tid);
		if (files->schedstat < 0)
			return false;
	}
	files->stat = open_path(acc, "/proc/%d/task/%d/stat", pid, tid);
	if (files->stat < 0)
		return false;
	files->status = open_path(acc, "/proc/%d/task/%d/status", pid, tid);
	return files->status >= 0;
}

struct accounting *accounting_open(const int *cpus, unsigned int ncpus, const pid_t *pids,
				   const pid_t *tids, unsigned int workers, const char *cgroup,
				   const char **path)
{
	struct accounting *acc;

	*path = "";
	acc = calloc(1, sizeof(*acc) + workers * sizeof(struct worker_files));
	if (!acc)
		return NULL;
	*path = acc->path;
	acc->cpus = cpus;
	acc->ncpus = ncpus;
	acc->workers = workers;
	acc->cgroup = -1;
	acc->size = TEXT_SIZE;
	acc->text = malloc(acc->size);
	if (!acc->text)
		return NULL;
	acc->stat = open_path(acc, "/proc/stat");
	if (acc->stat < 0)
		return NULL;
	if (cgroup) {
		acc->cgroup = open_path(acc, "%s/cpu.stat", cgroup);
		if (acc->cgroup < 0)
			return NULL;
	}
	for (unsigned int i = 0; i < workers; i++)
		if (!open_worker(acc, &acc->files[i], pids[i], tids[i]))
			return NULL;
	return acc;
}

struct usage *usage_alloc(unsigned int workers)
{
	struct usage *usage = calloc(1, sizeof(*usage));

	if (!usage)
		return NULL;
	usage->workers = calloc(workers, sizeof(struct worker_usage));
	return usage->workers ? usage : NULL;
}

static bool read_text(const struct accounting *acc, int fd)
{
	size_t done = 0;
	ssize_t n;

	while ((n = pread(fd, acc->text + done, acc->size - 1 - done, (off_t)done)) > 0)
		done += (size_t)n;
	acc->text[done] = '\0';
	return n == 0;
}

/* The fields of /proc/stat: user nice system idle iowait irq softirq steal guest guest_nice. */
static void add_cpu(const char *line, uint64_t *sum)
{
	unsigned long long v[8] = { 0 };

	sscanf(line, "%*s %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4],
	       &v[5], &v[6], &v[7]);
	sum[CPU_USER] += v[0] + v[1];
	sum[CPU_SYSTEM] += v[2];
	sum[CPU_IDLE] += v[3];
	sum[CPU_IOWAIT] += v[4];
	sum[CPU_IRQ] += v[5];
	sum[CPU_SOFTIRQ] += v[6];
	sum[CPU_STEAL] += v[7];
}

static bool under_test(const struct accounting *acc, int cpu)
{
	for (unsigned int i = 0; i < acc->ncpus; i++)
		if (acc->cpus[i] == cpu)
			return true;
	return false;
}

static bool read_cpus(const struct accounting *acc, struct usage *usage)
{
	memset(usage->cpu, 0, sizeof(usage->cpu));
	if (!read_text(acc, acc->stat))
		return false;
	for (const char *line = acc->text; line; line = strchr(line, '\n')) {
		int cpu;

		if (*line == '\n')
			line++;
		if (sscanf(line, "cpu%d", &cpu) == 1 && under_test(acc, cpu))
			add_cpu(line, usage->cpu);
		else if (strncmp(line, "cpu", 3))
			break;
	}
	return true;
}

static uint64_t field(const char *text, const char *name)
{
	const char *found = strstr(text, name);

	return found ? strtoull(found + strlen(name), NULL, 10) : 0;
}

static bool read_worker(const struct accounting *acc, const struct worker_files *files,
			struct worker_usage *usage)
{
	unsigned long long user = 0, system = 0;
	const char *rest;

	if (!read_text(acc, files->stat))
		return false;
	/* Fields 14 and 15; the name before them may hold anything but ends with the last ')'. */
	rest = strrchr(acc->text, ')');
	if (rest)
		sscanf(rest, ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu", &user,
		       &system);
	usage->user = user;
	usage->system = system;
	if (!read_text(acc, files->status))
		return false;
	usage->voluntary = field(acc->text, "\nvoluntary_ctxt_switches:");
	usage->involuntary = field(acc->text, "\nnonvoluntary_ctxt_switches:");
	return true;
}

bool accounting_read(const struct accounting *acc, struct usage *usage, const char **path)
{
	*path = "/proc/stat";
	if (!read_cpus(acc, usage))
		return false;
	if (acc->cgroup >= 0) {
		*path = "cpu.stat";
		if (!read_text(acc, acc->cgroup))
			return false;
		usage->cgroup_us = field(acc->text, "usage_usec ");
	}
	*path = "/proc/PID/stat";
	for (unsigned int i = 0; i < acc->workers; i++)
		if (!read_worker(acc, &acc->files[i], &usage->workers[i]))
			return false;
	return true;
}

bool accounting_clocks(const struct accounting *acc, struct usage *usage)
{
	struct timespec ts;

	for (unsigned int i = 0; i < acc->workers; i++) {
		const struct worker_files *files = &acc->files[i];

		if (files->schedstat >= 0) {
			if (!read_text(acc, files->schedstat))
				return false;
			usage->workers[i].ns = strtoull(acc->text, NULL, 10);
			continue;
		}
		if (clock_gettime(files->clock, &ts))
			return false;
		usage->workers[i].ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	}
	return true;
}

void usage_add(struct usage *sum, const struct usage *before, const struct usage *after,
	       unsigned int workers)
{
	/* iowait can run backwards (proc(5)); a negative difference counts as none. */
	for (unsigned int i = 0; i < CPU_STATES; i++)
		if (after->cpu[i] > before->cpu[i])
			sum->cpu[i] += after->cpu[i] - before->cpu[i];
	sum->cgroup_us += after->cgroup_us - before->cgroup_us;
	for (unsigned int i = 0; i < workers; i++) {
		struct worker_usage *s = &sum->workers[i];
		const struct worker_usage *a = &after->workers[i], *b = &before->workers[i];

		s->ns += a->ns - b->ns;
		s->user += a->user - b->user;
		s->system += a->system - b->system;
		s->voluntary += a->voluntary - b->voluntary;
		s->involuntary += a->involuntary - b->involuntary;
	}
}
