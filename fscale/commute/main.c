// SPDX-License-Identifier: GPL-2.0-only
/*
 * Executes tests of pairs of calls in a directory of the file system under test:
 *
 *	fscale-commute check DIRECTORY TESTS	prints results and states of both orders
 *	fscale-commute ab|ba DIRECTORY TESTS	executes one order while the simulator watches
 *
 * fscale/commute/script.py writes the tests and reads what is printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../microbench/core/roi.h"
#include "call.h"
#include "process.h"

#define DIRECTORIES 2
#define NAMES 3
#define FILES 4

struct board *board;
/* The files of the test are held, so that none made later gets an inode number of theirs. */
static int held[FILES];
static unsigned int nheld;

void die(const char *what)
{
	fprintf(stderr, "fscale-commute: %s: %s: %s\n", board->test.id, what, strerror(errno));
	_exit(1);
}

void say(const char *format, ...)
{
	size_t room = sizeof(board->text) - board->used;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(board->text + board->used, room, format, arguments);
	va_end(arguments);
	if (n < 0 || (size_t)n >= room)
		die("too much output");
	board->used += (size_t)n;
}

static void print_said(void)
{
	if (fwrite(board->text, 1, board->used, stdout) != board->used || fflush(stdout))
		die("stdout");
	board->used = 0;
}

static void lost(int signal)
{
	(void)signal;
	_exit(1); /* the process has said why */
}

static void write_block(int fd, const char *value)
{
	char block[BLOCK];

	memset(block, number(value), BLOCK);
	if (write(fd, block, BLOCK) != BLOCK)
		die("write");
}

/* file PATH VALUE... */
static void make_file(const struct line *line)
{
	int fd = open(line->word[1], O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		die(line->word[1]);
	for (unsigned int i = 2; i < line->n; i++)
		write_block(fd, line->word[i]);
	call_say_attributes(fd);
	if (close(fd))
		die("close");
	if (board->tracing)
		return;
	if (nheld == FILES)
		die("malformed test");
	held[nheld] = open(line->word[1], O_PATH);
	if (held[nheld++] < 0)
		die(line->word[1]);
}

static void make_pipes(void)
{
	for (int i = 0; i < PIPES; i++) {
		int ends[2];

		if (pipe2(ends, O_NONBLOCK))
			die("pipe");
		for (int end = 0; end < 2; end++) {
			board->pipes[i][end] = fcntl(ends[end], F_DUPFD, OWN);
			if (board->pipes[i][end] < 0 || close(ends[end]))
				die("pipe");
		}
	}
}

/* queue PIPE VALUE... */
static void fill_pipe(int fd, const struct line *line)
{
	for (unsigned int i = 2; i < line->n; i++)
		write_block(fd, line->word[i]);
}

/* The part of the initial state that no process has. */
static void make(void)
{
	say("made");
	for (unsigned int i = 0; i < board->test.n; i++) {
		const struct line *line = &board->test.lines[i];

		if (!strcmp(line->word[0], "file"))
			make_file(line);
		else if (!strcmp(line->word[0], "link") && link(line->word[1], line->word[2]))
			die("link");
		else if (!strcmp(line->word[0], "queue"))
			fill_pipe(board->pipes[number(line->word[1])][1], line);
	}
	for (int i = 0; i < PIPES; i++)
		call_say_attributes(board->pipes[i][0]);
	say("\n");
}

/* unlink PATH: files that have no name */
static void remove_names(void)
{
	for (unsigned int i = 0; i < board->test.n; i++) {
		const struct line *line = &board->test.lines[i];

		if (!strcmp(line->word[0], "unlink") && unlink(line->word[1]))
			die("unlink");
	}
}

static void show_name(const char *path)
{
	char block[BLOCK];
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return;
	say("name %s", path);
	call_say_attributes(fd);
	while (read(fd, block, BLOCK) == BLOCK)
		say(" %d", block_value(block));
	say("\n");
	close(fd);
}

static void show_queue(int pipe)
{
	char block[BLOCK];

	say("queue %d", pipe);
	while (read(board->pipes[pipe][0], block, BLOCK) == BLOCK)
		say(" %d", block_value(block));
	say("\n");
}

/* Do it for each name that a test may use. */
static void for_names(void (*what)(const char *path))
{
	char path[32];

	for (int d = 0; d < DIRECTORIES; d++) {
		for (int n = 0; n < NAMES; n++) {
			snprintf(path, sizeof(path), "d%d/n%d", d, n);
			what(path);
		}
	}
}

static void ask_processes(enum request request)
{
	for (int process = 0; process < (board->test.shared ? 1 : 2); process++)
		process_ask(process_actor(process), request);
}

static void unlink_name(const char *path)
{
	if (unlink(path) && errno != ENOENT)
		die(path);
}

static void drop(void)
{
	char block[BLOCK];

	ask_processes(DROP);
	for_names(unlink_name);
	while (nheld)
		close(held[--nheld]);
	for (int i = 0; i < PIPES; i++)
		while (read(board->pipes[i][0], block, BLOCK) > 0)
			;
}

/* Execute the test with call `first` before the other one. */
static void run(int first)
{
	say("test %s %s\n", board->test.id, first ? "ba" : "ab");
	make();
	ask_processes(MAKE);
	remove_names();
	process_ask(process_actor(first), CALL);
	process_ask(process_actor(!first), CALL);
}

static void check(void)
{
	for (int first = 0; first < 2; first++) {
		run(first);
		for_names(show_name);
		for (int i = 0; i < PIPES; i++)
			show_queue(i);
		ask_processes(SHOW);
		drop();
	}
}

/* The simulator knows tests by their place in the input. */
static void trace(int first)
{
	static uint32_t tests;

	run(first);
	roi_pair(tests++);
	drop();
}

static void split(struct line *line, char *text)
{
	char *rest = NULL;

	line->n = 0;
	for (char *word = strtok_r(text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
		if (line->n == WORDS || strlen(word) >= sizeof(line->word[0]))
			die("malformed test");
		strcpy(line->word[line->n++], word);
	}
}

/*
 * Read a test: the line `test ID PROCESSES`, those of the initial state, and at the end the calls as
 * `a CALL ARGUMENT...` and `b CALL ARGUMENT...`. False at the end of the input.
 */
static bool read_test(void)
{
	struct test *test = &board->test;
	char text[512];
	struct line line;

	test->n = 0;
	while (fgets(text, sizeof(text), stdin)) {
		int side = text[0] == 'a' ? 0 : text[0] == 'b' ? 1 : -1;

		if (side >= 0) {
			split(&test->calls[side], text + 1);
			test->calls[side].side = side;
			if (side)
				return true;
			continue;
		}
		split(&line, text);
		if (line.n == 3 && !strcmp(line.word[0], "test")) {
			strcpy(test->id, line.word[1]);
			test->shared = number(line.word[2]) == 1;
		} else if (test->n < LINES) {
			test->lines[test->n++] = line;
		} else {
			die("malformed test");
		}
	}
	return false;
}

static void enter(const char *directory)
{
	if (chdir(directory))
		die(directory);
	for (int d = 0; d < DIRECTORIES; d++) {
		const char name[] = { 'd', (char)('0' + d), 0 };

		if (mkdir(name, 0700) && errno != EEXIST)
			die(name);
	}
}

int main(int argc, char **argv)
{
	int first;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED || sem_init(&board->turn, true, 0)) {
		perror("fscale-commute");
		return 1;
	}
	if (argc != 4 || !freopen(argv[3], "r", stdin))
		die("give check, ab or ba, a directory, and a file of tests");
	board->tracing = strcmp(argv[1], "check");
	first = argv[1][0] == 'b';
	enter(argv[2]);
	make_pipes();
	if (signal(SIGCHLD, lost) == SIG_ERR)
		die("signal");
	process_start_all();
	if (board->tracing) {
		process_pin(2);
		roi_mode_detailed();
		for (int i = 0; i < 16; i++)
			sched_yield();
	}
	while (read_test()) {
		if (board->tracing)
			trace(first);
		else
			check();
		print_said();
	}
	if (board->tracing)
		roi_mode_fast();
	return 0; /* the processes end with this one */
}
