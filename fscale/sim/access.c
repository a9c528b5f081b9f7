// SPDX-License-Identifier: GPL-2.0-only
#include "access.h"

#include <pthread.h>
#include <string.h>

#include "schedule.h"
#include "hot.h"
#include "rules.h"
#include "words.h"

/* Lines that a vCPU accessed recently: virtual address -> place in the directory. */
#define KNOWN 4096
/* A spinning loop reads at most this many different lines in a row. */
#define RECENT 8
/* RAM above this address continues at 4 GiB; firmware and devices lie between. */
#define HOLE (4ull << 30)

struct known {
	uint64_t tag;
	struct line *line;
};

struct core {
	struct known known[KNOWN];
	struct line *recent[RECENT];
	unsigned int last;
	struct line *locked;		/* taken by a locked instruction last, */
	uint64_t locked_virtual;	/* by this address */
	uint64_t spun;			/* the part of its spinning that is charged to lines */
	struct transfers transfers;
};

static const struct parameters *params;
static struct coherence directory;
static struct core cores[MAX_VCPUS];
/* One vCPU runs at a time, except while all vCPUs leave translated code. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool access_open(const struct parameters *p)
{
	params = p;
	return coherence_open(&directory, p, HOLE + (p->memory_mib << 20)) &&
	       (!p->words || words_open((unsigned int)p->vcpus, directory.nlines));
}

void access_begin(void)
{
	coherence_empty(&directory);
	if (params->words)
		words_empty();
	for (unsigned int c = 0; c < params->vcpus; c++) {
		memset(cores[c].known, 0, sizeof(cores[c].known));
		memset(cores[c].recent, 0, sizeof(cores[c].recent));
		cores[c].locked = NULL;
	}
}

const struct transfers *access_transfers(unsigned int c)
{
	return &cores[c].transfers;
}

static void looked_at(struct core *core, struct line *line)
{
	if (core->recent[core->last % RECENT] != line)
		core->recent[++core->last % RECENT] = line;
}

bool access_hits(unsigned int c, uint64_t virtual, bool write)
{
	struct core *core = &cores[c];
	uint64_t tag = virtual >> LINE_SHIFT;
	struct known *known = &core->known[tag % KNOWN];

	if (known->tag != tag || !line_hits(known->line, c, write))
		return false;
	looked_at(core, known->line);
	return true;
}

/* vCPUs that spin on a line lose it: wake them. */
static void wake_spinners(struct line *line, uint64_t clock)
{
	line->watched = false;
	for (unsigned int c = 0; c < params->vcpus; c++) {
		if (!schedule_parked(c))
			continue;
		for (unsigned int i = 0; i < RECENT; i++) {
			if (cores[c].recent[i] == line) {
				schedule_unpark(c, clock);
				break;
			}
		}
	}
}

static void take(unsigned int c, struct line *line, const struct place *place, bool write)
{
	struct transfers *sum = &cores[c].transfers;
	uint64_t clock = schedule_clock(c);
	struct transfer t;

	line->free = line->free || rules_free(place->virtual, place->pc);
	t = coherence_take(&directory, line, c, write, clock);
	sum->kinds[t.kind]++;
	sum->remote += t.remote;
	sum->free += line->free;
	sum->stall += t.stall;
	sum->queue += t.queue;
	if (write && line->watched)
		wake_spinners(line, clock + t.stall);
	schedule_stall(c, t.stall);
	if (t.kind >= KIND_CLEAN)
		hot_transfer(place, &t, write);
}

void access_line(unsigned int c, uint64_t virtual, uint64_t physical, bool write, uint64_t pc)
{
	struct line *line = coherence_line(&directory, physical);
	struct core *core = &cores[c];
	uint64_t tag = virtual >> LINE_SHIFT;

	if (!line)
		return;
	core->known[tag % KNOWN] = (struct known){ tag, line };
	looked_at(core, line);
	if (line_hits(line, c, write) || (write && coherence_own(line, c)))
		return;
	pthread_mutex_lock(&lock);
	take(c, line, &(struct place){ virtual, physical, pc }, write);
	pthread_mutex_unlock(&lock);
}

void access_words(unsigned int c, uint64_t virtual, unsigned int size, bool write, uint64_t pc)
{
	uint64_t tag = virtual >> LINE_SHIFT, number;
	const struct known *known = &cores[c].known[tag % KNOWN];

	if (known->tag != tag)
		return;
	number = coherence_number(&directory, known->line);
	if (words_hit(number, c, virtual, size, write))
		return;
	pthread_mutex_lock(&lock);
	if (words_take(number, c, virtual, size, write)) {
		cores[c].transfers.words++;
		hot_word(&(struct place){ virtual, number << LINE_SHIFT, pc });
	}
	pthread_mutex_unlock(&lock);
}

/* Charge the line that `c` waits for, or waited for until now. */
static void settle(unsigned int c)
{
	struct core *core = &cores[c];
	uint64_t spin = schedule_waits(c).spin, cycles = spin - core->spun;

	core->spun = spin;
	if (!cycles || !core->locked)
		return;
	pthread_mutex_lock(&lock);
	hot_spin(coherence_number(&directory, core->locked), core->locked_virtual, cycles);
	pthread_mutex_unlock(&lock);
}

void access_locked(unsigned int c, uint64_t virtual)
{
	struct core *core = &cores[c];
	uint64_t tag = virtual >> LINE_SHIFT;
	const struct known *known = &core->known[tag % KNOWN];

	if (known->tag != tag || known->line == core->locked)
		return;
	settle(c);
	core->locked = known->line;
	core->locked_virtual = virtual;
}

void access_forget_spinning(void)
{
	for (unsigned int c = 0; c < params->vcpus; c++)
		cores[c].spun = schedule_waits(c).spin;
}

void access_settle_spinning(void)
{
	for (unsigned int c = 0; c < params->vcpus; c++)
		settle(c);
}

/* Whether this vCPU still has all lines that its loop read last. */
static bool unchanged(unsigned int c)
{
	struct core *core = &cores[c];

	for (unsigned int i = 0; i < RECENT; i++) {
		if (core->recent[i] && !line_hits(core->recent[i], c, false)) {
			memset(core->recent, 0, sizeof(core->recent));
			return false;
		}
	}
	return true;
}

void access_pause(unsigned int c)
{
	enum mode mode = schedule_mode();

	if (mode == MODE_FAST)
		return;
	schedule_spin(c, params->cost_pause);
	if (!params->park)
		return;
	if (mode == MODE_DETAILED) {
		if (!unchanged(c))
			return;
		for (unsigned int i = 0; i < RECENT; i++) {
			if (cores[c].recent[i])
				cores[c].recent[i]->watched = true;
		}
	}
	schedule_park(c);
}
