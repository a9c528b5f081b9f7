// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cut and the replay: after format.h, "Operations that span domains". All transactions of all
 * journals have been read; then the cut; then the newest copy of each block goes in place.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "journals.h"
#include "tools/common/die.h"
#include "tools/common/parallel.h"

struct revoked {
	u64 block, seq;
};

/* A copy, and its place among those of its journal. */
struct numbered {
	struct copy copy;
	size_t number;
};

/* The last sequence of a domain that is kept. */
static u64 end_of(const struct journal *journal)
{
	return journal->first_seq - 1 + journal->kept;
}

/* A transaction is kept with all before it only, so it needs what they need. */
static void add_up_needs(const struct check *c, struct journal *journal)
{
	for (size_t i = 1; i < journal->count; i++) {
		const u64 *before = journal->transactions[i - 1].needs;
		u64 *needs = journal->transactions[i].needs;

		for (u32 d = 0; d < c->domains; d++)
			if (needs[d] < before[d])
				needs[d] = before[d];
	}
}

/* How many of those kept come before the first that needs one of domain @d behind @end. */
static size_t count_sound(const struct journal *journal, u32 d, u64 end)
{
	size_t low = 0, high = journal->kept;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (journal->transactions[middle].needs[d] > end)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Keeps of each journal what comes before the first transaction that lacks a need, until all have. */
static void cut(const struct check *c, struct journal *journals)
{
	bool shorter[LANEFS_MAX_DOMAINS], more = true;

	for (u32 d = 0; d < c->domains; d++) {
		add_up_needs(c, &journals[d]);
		journals[d].kept = journals[d].count;
		shorter[d] = true;
	}
	while (more) {
		more = false;
		for (u32 d = 0; d < c->domains; d++) {
			u64 end = end_of(&journals[d]);

			if (!shorter[d])
				continue;
			more = true;
			shorter[d] = false;
			for (u32 other = 0; other < c->domains; other++) {
				size_t sound = count_sound(&journals[other], d, end);

				shorter[other] |= sound < journals[other].kept;
				journals[other].kept = sound;
			}
		}
	}
}

static int by_block_then_seq(const void *a, const void *b)
{
	const struct revoked *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static struct revoked *collect_revoked(const struct journal *journal, size_t *count)
{
	struct revoked *all = NULL;

	*count = 0;
	for (size_t i = 0; i < journal->kept; i++) {
		const struct transaction *t = &journal->transactions[i];

		all = reallocate(all, *count + t->revoke_count, sizeof(*all));
		for (size_t n = 0; n < t->revoke_count; n++)
			all[(*count)++] = (struct revoked){ t->revokes[n], t->seq };
	}
	if (*count)
		qsort(all, *count, sizeof(*all), by_block_then_seq);
	return all;
}

/* Whether a transaction from @seq on has revoked the block. */
static bool is_revoked(const struct revoked *all, size_t count, u64 block, u64 seq)
{
	size_t low = 0, high = count;
	const struct revoked wanted = { block, seq };

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (by_block_then_seq(&all[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && all[low].block == block;
}

/* By block, and the newest copy first. */
static int by_block_newest_first(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	if (x->copy.block != y->copy.block)
		return x->copy.block < y->copy.block ? -1 : 1;
	return x->number > y->number ? -1 : x->number < y->number;
}

/* The newest copy of each block that was not revoked, by ascending blocks. */
static struct numbered *collect_newest(const struct journal *journal, size_t *count)
{
	size_t revoked_count, all = 0, number = 0;
	struct revoked *revoked = collect_revoked(journal, &revoked_count);
	struct numbered *newest;

	for (size_t i = 0; i < journal->kept; i++)
		all += journal->transactions[i].copy_count;
	newest = allocate(all, sizeof(*newest));
	all = 0;
	for (size_t i = 0; i < journal->kept; i++) {
		const struct transaction *t = &journal->transactions[i];

		for (size_t n = 0; n < t->copy_count; n++, number++)
			if (!is_revoked(revoked, revoked_count, t->copies[n].block, t->seq))
				newest[all++] = (struct numbered){ t->copies[n], number };
	}
	if (all)
		qsort(newest, all, sizeof(*newest), by_block_newest_first);
	*count = 0;
	for (size_t i = 0; i < all; i++)
		if (!*count || newest[*count - 1].copy.block != newest[i].copy.block)
			newest[(*count)++] = newest[i];
	free(revoked);
	return newest;
}

struct replay {
	struct check *check;
	struct journal *journals;
	struct replayed *replayed;
	pthread_mutex_t mutex;	/* the image's changes, and *replayed */
};

static void read_copy(struct check *c, u64 place, void *block)
{
	int error = device_read(&c->image.device, block, LANEFS_BLOCK_SIZE,
				place * LANEFS_BLOCK_SIZE);

	if (error)
		die(FSCK_FAILED, "%s: cannot read block %llu: %s", c->image.device.path, place,
		    strerror(-error));
}

static void replay_domain(void *context, size_t domain)
{
	struct replay *replay = context;
	struct check *c = replay->check;
	const struct journal *journal = &replay->journals[domain];
	u8 block[LANEFS_BLOCK_SIZE];
	size_t count;
	struct numbered *newest = collect_newest(journal, &count);

	for (size_t i = 0; i < count; i++) {
		int error;

		/* From the device itself: fsck changes nothing in journals. */
		read_copy(c, newest[i].copy.place, block);
		pthread_mutex_lock(&replay->mutex);
		error = image_write(&c->image, newest[i].copy.block, block);
		pthread_mutex_unlock(&replay->mutex);
		if (error)
			die(FSCK_FAILED, "block %llu is not on the device", newest[i].copy.block);
	}
	free(newest);
	pthread_mutex_lock(&replay->mutex);
	replay->replayed->blocks += count;
	replay->replayed->transactions += journal->kept;
	replay->replayed->discarded += journal->count - journal->kept;
	pthread_mutex_unlock(&replay->mutex);
}

/* Reports the transactions that the cut omits because another journal has lost what they need. */
static void report_cut(struct check *c, const struct journal *journals)
{
	bool damaged = false;

	for (u32 d = 0; d < c->domains; d++)
		damaged |= journals[d].damaged;
	for (u32 d = 0; damaged && d < c->domains; d++)
		if (journals[d].kept < journals[d].count)
			can_repair(&c->report, "domain %u: transactions %llu to %llu need others that"
				 " are missing", d, end_of(&journals[d]) + 1,
				 journals[d].first_seq - 1 + journals[d].count);
}

void replay_journals(struct check *c, struct replayed *replayed)
{
	bool clean = (le32_to_cpu(c->super.sb_state) & ~LANEFS_STATE_ERROR) == LANEFS_STATE_CLEAN;
	struct journal *journals = read_journals(c, clean);
	struct replay replay = { .check = c, .journals = journals, .replayed = replayed,
				 .mutex = PTHREAD_MUTEX_INITIALIZER };

	*replayed = (struct replayed){ 0 };
	cut(c, journals);
	report_cut(c, journals);
	parallel(c->threads, c->domains, replay_domain, &replay);
	free_journals(c, journals);
}
