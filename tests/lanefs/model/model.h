/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Random operations on a file system under test and the same on a reference, compared.
 *
 * Both are directories: the one under test ("test") and one on tmpfs ("reference"). Each process
 * works on names of its own, in private directories and in directories that all share, so that
 * what it must see is determined by its seed, while the shared directories' blocks, the journal
 * and the allocators see real concurrency. Nothing is kept in memory between runs: a second run
 * goes on with what is there, also after a remount or a recovery.
 */
#ifndef MODEL_H
#define MODEL_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

enum side { TEST, REFERENCE, SIDES };

#define SHARED_DIRS	4
#define OPEN_FILES	6
#define LONGEST		(64 << 10)	/* bytes of one read or write */
#define STAMP_LIMIT	1500000000	/* seconds: stamps are older, the clock is newer */

struct options {
	const char *dir[SIDES];
	uint64_t seed;
	unsigned long ops;		/* of each process */
	int processes;
	const char *fault;		/* planted in the side under test, or NULL */
	bool full;			/* the side under test may run out of space */
	bool verify;			/* compare the trees, do nothing else */
	bool drop_caches;
};

/* What the file system under test can do beyond POSIX's minimum; probed once. */
struct abilities {
	bool exchange;
	bool fallocate;
	bool punch;
	bool zero_range;
	bool shift;			/* collapse and insert ranges */
	bool tmpfile;
	bool direct;
	bool whiteout;
	bool user_xattr;
	bool trusted_xattr;
};

struct open_file {
	int fd[SIDES];			/* -1: free */
	char path[PATH_MAX];		/* as it was when opened, for messages */
	bool readable;
	bool writable;
};

struct process {
	const struct options *options;
	const struct abilities *can;
	int number;
	int root[SIDES];		/* O_PATH descriptors of the two directories */
	uint64_t rng[2];
	unsigned long op;		/* number of the current operation, from 1 */
	struct open_file open[OPEN_FILES];
	unsigned char *buffer[SIDES];
	bool fault_done;
	bool failed;
};

/* rng.c */
void rng_seed(struct process *p, uint64_t seed, uint64_t stream);
uint64_t rng_next(struct process *p);
uint32_t rng_below(struct process *p, uint32_t bound);
bool rng_percent(struct process *p, unsigned int percent);
void rng_fill(struct process *p, unsigned char *data, size_t length);

/* path.c */
void path_setup(struct process *p);
void path_any(struct process *p, char path[PATH_MAX]);

/*
 * A call on a path in /proc/self/fd, once more where it gives ESRCH. Linux 6.1 does that now and then
 * while another process has caches dropped: the walk meets an inode of proc that is being evicted.
 */
#define OF_PROC(call) ({						\
	long result_ = (call);						\
	for (int tries_ = 0; result_ < 0 && errno == ESRCH && tries_ < 100; tries_++)	\
		result_ = (call);					\
	result_;							\
})

/* report.c */
void note(struct process *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mismatch(struct process *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* fault.c */
bool fault_known(const char *name);
void fault_list(void);
bool fault_due(struct process *p, const char *name);

/* compare.c */
bool same_result(struct process *p, const char *call, long test, int test_errno, long reference,
		 int reference_errno);
bool no_space(struct process *p, long result, int error);
void compare_stat(struct process *p, const char *path);
void compare_stats(struct process *p, const char *what, const struct stat *test,
		   const struct stat *reference);
void compare_contents(struct process *p, const char *what, int test, int reference);
void compare_directory(struct process *p, const char *path);
void compare_tree(struct process *p, const char *path);
void compare_everything(struct process *p);

/* xattrs.c */
bool xattrs_work(const struct process *p, const char *path, bool trusted);
void compare_xattrs(struct process *p, const char *path);
void op_xattr(struct process *p);

/* shift.c */
int shift_reference(int open_fd, int mode, off_t offset, off_t length);

/* ops.c, fileops.c */
void operate(struct process *p);
void file_operation(struct process *p, struct open_file *file);
void close_file(struct process *p, struct open_file *file);

#endif
