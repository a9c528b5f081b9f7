/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that all processes share: the test, whose turn it is, and what is printed. */
#ifndef FSCALE_COMMUTE_BOARD_H
#define FSCALE_COMMUTE_BOARD_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LINES 48
#define WORDS 12
#define PIPES 2
#define BLOCK 4096
#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

/* Descriptors of the model are 0 and 1; those that may be any are moved to ANY and ANY + 1. */
#define DESCRIPTORS 2
#define ANY 100
/* Descriptors of this program lie above those of the model. */
#define OWN 200

struct line {
	unsigned int n;
	int side;			/* of a call: 0 is a, 1 is b */
	char word[WORDS][32];
};

struct test {
	char id[64];
	bool shared;			/* both calls are of process 0 */
	unsigned int n;
	struct line lines[LINES];	/* the initial state */
	struct line calls[2];
};

enum request {
	MAKE,		/* the process's part of the initial state */
	CALL,
	SHOW,		/* the process's part of the state */
	DROP,
};

struct actor {
	sem_t turn;
	enum request request;
	int process, side;		/* of the model; 0 executes the test's call a, 1 its call b */
};

struct board {
	sem_t turn;			/* of the program's first process */
	struct actor actors[4];
	struct test test;
	int pipes[PIPES][2];
	bool tracing;			/* the simulator watches the calls */
	size_t used;
	char text[1 << 16];
};

extern struct board *board;

/* Add to what is printed about the test. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);

__attribute__((noreturn)) void die(const char *what);

/* The value of a block, a page whose bytes are all the same; -1 if they are not. */
static inline int block_value(const char *block)
{
	return memcmp(block, block + 1, BLOCK - 1) ? -1 : block[0];
}

static inline int number(const char *word)
{
	return word[0] - '0';
}

#endif
