/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An overlay whose layers are directories of the file system under test: "$ID/merged", of one
 * worker, or "share/merged", of all. Its lower layer changes only while it is not mounted, for the
 * kernel does not define the effect otherwise.
 */
#ifndef FSCALE_OVERLAY_H
#define FSCALE_OVERLAY_H

#include <pthread.h>

#include "names.h"
#include "namespace.h"

/* What all users of one overlay share. */
struct overlay_state {
	pthread_mutex_t lock;
	bool mounted;
	unsigned int ready;	/* users whose part of the layers is as it should be */
};

struct overlay {
	struct overlay_state *state;
	unsigned int users;
	char place[16];		/* "$ID" or "share" */
	char prefix[16];	/* of the names of a worker's own files in it: "" or "$ID." */
};

/*
 * Enter the namespace and make the directories, of one worker if the workload's sharing is low, else
 * of all; the overlay is not mounted yet.
 */
enum outcome overlay_init(struct worker *w, struct overlay *o);

/* Makes what a shared overlay needs, for `inherit` of a workload. */
const char *overlay_inherit(const char *dir);

/* The first of a worker's names in "lower", "upper" or "merged". */
void overlay_name(const struct overlay *o, struct name *name, const char *layer);

/*
 * Each user calls the one before it changes its part of the layers, and the other when it has; the
 * last one mounts. The run is skipped if there is no overlayfs, or none with this upper layer.
 */
enum outcome overlay_unmount(struct worker *w, struct overlay *o);
enum outcome overlay_mount(struct worker *w, struct overlay *o);

#endif
