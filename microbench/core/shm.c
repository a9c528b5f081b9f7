// SPDX-License-Identifier: GPL-2.0-only
#include "shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* A snapshot that takes longer than this was interrupted; it is taken again. */
#define SNAPSHOT_BASE_NS 20000
#define SNAPSHOT_WORKER_NS 500
#define SNAPSHOT_TRIES 8

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static size_t snapshot_size(unsigned int workers)
{
	return sizeof(struct snapshot) + workers * sizeof(uint64_t);
}

static void *map_shared(size_t size)
{
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

struct shared *shm_create(unsigned int workers)
{
	struct shared *shm = map_shared(sizeof(*shm) + workers * sizeof(struct slot));

	if (!shm)
		return NULL;
	shm->workers = workers;
	shm->last = map_shared(snapshot_size(workers));
	return shm->last ? shm : NULL;
}

struct snapshot *snapshot_alloc(unsigned int workers)
{
	return calloc(1, snapshot_size(workers));
}

static void snapshot_once(const struct shared *shm, struct snapshot *snap)
{
	uint64_t before = now_ns();

	for (unsigned int i = 0; i < shm->workers; i++)
		snap->ops[i] = atomic_load_explicit(&shm->slots[i].ops, memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	snap->skew_ns = now_ns() - before;
	snap->ns = before + snap->skew_ns / 2;
}

void snapshot_take(const struct shared *shm, struct snapshot *snap)
{
	uint64_t limit = SNAPSHOT_BASE_NS + (uint64_t)shm->workers * SNAPSHOT_WORKER_NS;

	for (int i = 0; i < SNAPSHOT_TRIES; i++) {
		snapshot_once(shm, snap);
		if (snap->skew_ns <= limit)
			return;
	}
}

void shm_end_window(struct shared *shm)
{
	int expected = 0;

	if (!atomic_compare_exchange_strong(&shm->exhausting, &expected, 1))
		return;
	snapshot_take(shm, shm->last);
	atomic_store_explicit(&shm->closed_ns, shm->last->ns, memory_order_relaxed);
	atomic_store_explicit(&shm->timed, TIMED_OVER, memory_order_relaxed);
	atomic_store_explicit(&shm->exhausted, 1, memory_order_release);
	atomic_store_explicit(&shm->phase, PHASE_STOP, memory_order_release);
}

void error_record(struct error_record *error, int worker, const char *call, const char *dir,
		  const char *path, int code, const char *what)
{
	int expected = 0;

	if (!atomic_compare_exchange_strong(&error->claimed, &expected, 1))
		return;
	error->worker = worker;
	error->code = code;
	snprintf(error->call, sizeof(error->call), "%s", call);
	if (path && dir && path[0] != '/')
		snprintf(error->path, sizeof(error->path), "%s/%s", dir, path);
	else if (path)
		snprintf(error->path, sizeof(error->path), "%s", path);
	snprintf(error->message, sizeof(error->message), "%s%s%.500s: %s", call, path ? " " : "",
		 error->path, what ? what : strerror(code));
	atomic_store_explicit(&error->complete, 1, memory_order_release);
}
