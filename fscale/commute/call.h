/* SPDX-License-Identifier: GPL-2.0-only */
/* Executes a call of the model, and says what it returned. */
#ifndef FSCALE_COMMUTE_CALL_H
#define FSCALE_COMMUTE_CALL_H

#include "board.h"

/* The page of the address space that has a number in the model. */
char *call_address(const char *word);
int call_protection(const char *word);

/* Once in each process: SIGSEGV and SIGBUS are results. */
void call_open(void);

void call_run(const struct line *call);

/* Say `NUMBER-OF-INODE LINKS PAGES`, or that it is a pipe. */
void call_say_attributes(int fd);

/* Say the value of a page of memory and whether it can be written; a signal if it cannot be read. */
void call_say_memory(char *at);

#endif
