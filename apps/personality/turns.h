/* SPDX-License-Identifier: GPL-2.0-only */
/* A timed personality in turns, between which another file system's are taken. */
#ifndef APPS_TURNS_H
#define APPS_TURNS_H

#include "run.h"

/*
 * Work for a slice for each byte of standard input, until it ends, and print
 * "turn OPS SECONDS CPU SETTLED time" after each. -1 with an error.
 */
int turns_take(struct run *run);

#endif
