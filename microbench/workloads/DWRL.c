// SPDX-License-Identifier: GPL-2.0-only
#include "../core/blockio.h"

#include <string.h>
#include <sys/statvfs.h>

#include "../core/rng.h"

#define SMALL_FILE (1u << 20)

static PER_WORKER struct blockio io;
static PER_WORKER struct rng rng;
static PER_WORKER bool shared;
static PER_WORKER uint64_t first, blocks;	/* that this worker writes first */
static PER_WORKER uint64_t all;		/* of the file */
static PER_WORKER uint64_t unsynced, sync_every;

static enum outcome write_at(struct worker *w, uint64_t block)
{
	io.offset = (off_t)(block * io.size);
	if (block_write(w, &io))
		return OP_FAILED;
	if (!sync_every || ++unsynced < sync_every)
		return OP_OK;
	unsynced = 0;
	return block_sync(w, &io);
}

static inline enum outcome operation(struct worker *w)
{
	return write_at(w, rng_next(&rng) % all);
}

/* A share is of the whole file system, so that it does not matter which worker asks first. */
static enum outcome find_size(struct worker *w)
{
	uint64_t share = (uint64_t)option_number(w, "fill"), bytes = SMALL_FILE;
	struct statvfs fs;

	if (fstatvfs(io.fd, &fs))
		return worker_fail(w, "fstatvfs", io.path);
	if (share)
		bytes = (uint64_t)fs.f_blocks * fs.f_frsize / 100 * share / w->workers;
	blocks = bytes / io.size ?: 1;
	all = shared ? blocks * w->workers : blocks;
	first = shared ? blocks * w->id : 0;
	return OP_OK;
}

/* A log has little to collect before all of it has been written once. */
static enum outcome set_up(struct worker *w)
{
	uint64_t aged;

	shared = !strcmp(option_text(w, "file"), "shared");
	if (shared ? block_open(w, &io, "share", 0) : block_open_private(w, &io, w->id, 0))
		return OP_FAILED;
	if (find_size(w))
		return OP_FAILED;
	rng_seed(&rng, w->seed, w->id);
	sync_every = (uint64_t)option_number(w, "sync");
	for (uint64_t i = 0; i < blocks; i++)
		if (write_at(w, first + i))
			return OP_FAILED;
	aged = blocks * (uint64_t)option_number(w, "age") / 100;
	for (uint64_t i = 0; i < aged; i++)
		if (operation(w))
			return OP_FAILED;
	return block_flush(w, &io);
}
DEFINE_LOOPS(operation)

static const char *const files[] = { "private", "shared", NULL };

static const struct option_desc options[] = {
	BLOCK_OPTION,
	{ .name = "file", .help = "a file per worker, or one file that all share", .choices = files },
	{ .name = "fill", .help = "percent of the file system that the files fill; 0: 1 MiB each",
	  .value = 0, .min = 0, .max = 99 },
	{ .name = "age", .help = "bytes that the set-up overwrites, in percent of the files' size",
	  .value = 100, .min = 0, .max = 10000 },
	{ .name = "sync", .help = "blocks from one fsync() to the next; 0: no fsync()", .value = 256,
	  .min = 0, .max = 1 << 20 },
	{ .name = NULL }
};

static const struct workload dwrl = {
	.id = "DWRL",
	.title = "Overwrite a random block of a private file",
	.operation = "pwrite(\"$ID/data\", b, 4K, random); fsync() after each 256",
	.paper = "ScaleLFS (FAST 2025), section 5.1: random writes",
	.type = TYPE_DATA,
	.action = ACTION_WRITE,
	.sharing = SHARING_LOW,
	.contention = "garbage collection",
	.setup_text = "$ID/data (or share) of 1 MiB each, or a part of the file system, overwritten once",
	.min_cores = 1,
	.modes = DATA_MODES,
	.defers_work = true,
	.named_only = true,
	.options = options,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&dwrl);
