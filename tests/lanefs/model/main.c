// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exit codes: 0 no difference, 1 a difference (on stdout), 2 wrong use or the test cannot go on.
 * With one process a run repeats exactly; with several, each process's operations do.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "model.h"

static unsigned char buffers[SIDES][LONGEST] __attribute__((aligned(4096)));

static void usage(void)
{
	printf("usage: model [OPTION]... TEST-DIRECTORY REFERENCE-DIRECTORY\n"
	       "Random operations on a file system and on tmpfs, compared.\n"
	       "  --ops N         operations of each process (default 10000)\n"
	       "  --processes N   (default 4; the same in every run on the same directories)\n"
	       "  --seed N        (default 1)\n"
	       "  --full          the test directory may run out of space\n"
	       "  --drop-caches   drop all caches now and then (root)\n"
	       "  --verify        compare the trees that earlier runs left, do nothing else\n"
	       "  --fault NAME    plant a fault in each process's test side, to be found:\n");
	fault_list();
}

static unsigned long number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || end == text)
		fatal("%s is no number", text);
	return value;
}

static void parse(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{ "ops", required_argument, NULL, 'o' },
		{ "processes", required_argument, NULL, 'p' },
		{ "seed", required_argument, NULL, 's' },
		{ "fault", required_argument, NULL, 'f' },
		{ "full", no_argument, NULL, 'F' },
		{ "drop-caches", no_argument, NULL, 'd' },
		{ "verify", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	*options = (struct options){ .seed = 1, .ops = 10000, .processes = 4 };
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'o':
			options->ops = number(optarg);
			break;
		case 'p':
			options->processes = (int)number(optarg);
			break;
		case 's':
			options->seed = number(optarg);
			break;
		case 'f':
			options->fault = optarg;
			break;
		case 'F':
			options->full = true;
			break;
		case 'd':
			options->drop_caches = true;
			break;
		case 'v':
			options->verify = true;
			break;
		case 'h':
			usage();
			exit(0);
		default:
			exit(2);
		}
	}
	if (argc - optind != SIDES || options->processes < 1 || options->processes > 256)
		fatal("give two directories and 1 to 256 processes; see --help");
	if (options->fault && !fault_known(options->fault))
		fatal("no fault %s; see --help", options->fault);
	options->dir[TEST] = argv[optind];
	options->dir[REFERENCE] = argv[optind + 1];
}

/* What the reference may lack as well: whiteouts, and kinds of extended attributes. */
static void probe_both(const struct process *p, struct abilities *can)
{
	int made = openat(p->root[REFERENCE], "probe", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	if (made < 0)
		fatal("%s/probe: %s", p->options->dir[REFERENCE], strerror(errno));
	close(made);
	can->user_xattr = xattrs_work(p, "probe", false);
	can->trusted_xattr = xattrs_work(p, "probe", true);
	can->whiteout = true;
	for (int side = TEST; side < SIDES; side++)
		can->whiteout = renameat2(p->root[side], "probe", p->root[side], "probe3",
					  4 /* WHITEOUT */) == 0 && can->whiteout;
	for (int side = TEST; side < SIDES; side++) {
		unlinkat(p->root[side], "probe", 0);
		unlinkat(p->root[side], "probe3", 0);
	}
}

/* Try what not every file system can do on a file of our own. */
static void probe(const struct process *p, struct abilities *can)
{
	static const char *const names[] = { "probe", "probe2" };
	int root = p->root[TEST];
	int fd, direct, made;

	memset(can, 0, sizeof(*can));
	for (int n = 0; n < 2; n++) {
		made = openat(root, names[n], O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		if (made < 0) {
			if (p->options->full && errno == ENOSPC)
				return;
			fatal("%s/%s: %s", p->options->dir[TEST], names[n], strerror(errno));
		}
		close(made);
	}
	can->exchange = renameat2(root, "probe", root, "probe2", 2) == 0;
	fd = openat(root, "probe", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fatal("open: %s", strerror(errno));
	can->fallocate = fallocate(fd, 0, 0, 4096) == 0;
	can->punch = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0;
	can->zero_range = fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096) == 0;
	can->shift = ftruncate(fd, 3 * 4096) == 0 &&
		     fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096) == 0 &&
		     fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, 4096) == 0;
	close(fd);
	direct = openat(root, "probe", O_RDONLY | O_DIRECT | O_CLOEXEC);
	can->direct = direct >= 0;
	if (direct >= 0)
		close(direct);
	made = openat(root, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	can->tmpfile = made >= 0;
	if (made >= 0)
		close(made);
	probe_both(p, can);
	for (int n = 0; n < 2; n++)
		unlinkat(root, names[n], 0);
	printf("model: with%s O_TMPFILE, with%s exchange, with%s fallocate, with%s punch hole, "
	       "with%s zero range, with%s collapse and insert range, with%s direct I/O, with%s whiteouts, with%s user.*, "
	       "with%s trusted.*\n", can->tmpfile ? "" : "out",
	       can->exchange ? "" : "out", can->fallocate ? "" : "out", can->punch ? "" : "out",
	       can->zero_range ? "" : "out", can->shift ? "" : "out", can->direct ? "" : "out",
	       can->whiteout ? "" : "out", can->user_xattr ? "" : "out",
	       can->trusted_xattr ? "" : "out");
}

static int work(struct process *p)
{
	rng_seed(p, p->options->seed, (uint64_t)p->number);
	for (int n = 0; n < OPEN_FILES; n++)
		p->open[n].fd[TEST] = p->open[n].fd[REFERENCE] = -1;
	for (p->op = 1; p->op <= p->options->ops && !p->failed; p->op++)
		operate(p);
	for (int n = 0; n < OPEN_FILES && !p->failed; n++)
		if (p->open[n].fd[TEST] >= 0)
			close_file(p, &p->open[n]);
	return p->failed;
}

/* Run the processes; the first one with a difference ends all. Returns the exit code. */
static int run(struct process *p)
{
	pid_t children[256];
	int worst = 0, status;

	fflush(stdout);
	for (int n = 0; n < p->options->processes; n++) {
		children[n] = fork();
		if (children[n] < 0)
			fatal("fork: %s", strerror(errno));
		if (children[n] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			p->number = n;
			exit(work(p));
		}
	}
	for (int left = p->options->processes; left; left--) {
		pid_t done = wait(&status);

		if (done < 0)
			fatal("wait: %s", strerror(errno));
		if (WIFSIGNALED(status) && !worst)
			printf("DIFFERENCE: a process died of signal %d\n", WTERMSIG(status));
		if (status && !worst) {
			worst = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
			for (int n = 0; n < p->options->processes; n++)
				if (children[n] != done)
					kill(children[n], SIGTERM);
		}
	}
	return worst;
}

int main(int argc, char **argv)
{
	struct options options;
	struct abilities can;
	struct process p = { .options = &options, .can = &can };
	struct timespec from, to;
	unsigned long executed = 0;
	int code = 0;

	parse(argc, argv, &options);
	umask(0);
	for (int side = TEST; side < SIDES; side++) {
		p.root[side] = open(options.dir[side], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (p.root[side] < 0)
			fatal("%s: %s", options.dir[side], strerror(errno));
		p.buffer[side] = buffers[side];
	}
	clock_gettime(CLOCK_MONOTONIC, &from);
	if (!options.verify) {
		probe(&p, &can);
		path_setup(&p);
		code = run(&p);
		executed = options.ops * (unsigned long)options.processes;
	}
	/* Each process compared what it touched; now all that is there. */
	if (!code && (options.verify || !options.fault)) {
		options.verify = true;
		compare_everything(&p);
		code = p.failed;
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	if (!code)
		printf("model: no difference after %lu operations, seed %llu, %.1f s\n",
		       executed,
		       (unsigned long long)options.seed,
		       (double)(to.tv_sec - from.tv_sec) +
		       (double)(to.tv_nsec - from.tv_nsec) / 1e9);
	return code;
}
