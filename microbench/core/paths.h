/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where an operation finds its object: in a private directory, under a private name in the
 * directory that all share, or under a name that all share. Each call makes the directory.
 */
#ifndef FSCALE_PATHS_H
#define FSCALE_PATHS_H

#include "files.h"
#include "workload.h"

#define PATH_SIZE 32

/* "$ID/<name>" */
enum outcome path_private(struct worker *w, char path[PATH_SIZE], const char *name);
/* "share/<name>" */
enum outcome path_shared(struct worker *w, char path[PATH_SIZE], const char *name);
/* As the workload's sharing says: "$ID/<name>" (low), "share/<name>.$ID" (medium) or "share/<name>". */
enum outcome path_make(struct worker *w, char path[PATH_SIZE], const char *name);

/* Open the file for reading and writing, made if it is not there; the descriptor is left in *fd. */
enum outcome file_open(struct worker *w, const char *path, int *fd);
/* Make the file if it is not there. */
enum outcome file_ensure(struct worker *w, const char *path);

#endif
