// SPDX-License-Identifier: GPL-2.0-only
/* fsck.lanefs: checks a lanefs, and repairs it. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tools/common/arguments.h"
#include "tools/common/die.h"

/*
 * Each round but the last repairs something. More rounds than this would not end. Rounds that revive
 * inodes are not counted: each inode is revived once, and inodes below it later.
 */
#define MOST_ROUNDS 20
#define DEFAULT_THREADS 16
#define MOST_THREADS LANEFS_MAX_DOMAINS
/* A domain that is full may have room after other repairs, but not for ever. */
#define MOST_STUCK 3

static const char help[] =
"Usage: fsck.lanefs [-n | -y] [OPTION]... DEVICE\n"
"Checks a lanefs that is not mounted. After a crash it first replays the journals as a mount\n"
"does, with -n in memory only.\n"
"\n"
"  -n, --no          change nothing (default)\n"
"  -y, --yes         repair all damage that can be repaired; inodes without a name go to\n"
"                    /lost+found\n"
"  -a, -p            the same as -y\n"
"  -r, --replay      replay the journals as a mount does, and check nothing\n"
"  -j, --threads N   replay the journals of up to N domains in parallel (default: 16)\n"
"  -f, --force       no effect: every check is a full check\n"
"  -q, --quiet       print problems only\n"
"  -h, --help        print this text\n"
"\n"
"Examples:\n"
"  fsck.lanefs -n /dev/vdb\n"
"  fsck.lanefs -y image\n"
"  fsck.lanefs --replay -j 64 /dev/vdb\n"
"\n"
"Exit code, a sum as in fsck(8): 0 clean, 1 repaired, 4 damage is left, 8 the check failed,\n"
"16 wrong arguments.\n";

struct options {
	const char *path;
	bool repair, replay, quiet;
	unsigned int threads;
};

static unsigned int parse_threads(const char *text)
{
	char *end;
	unsigned long threads = strtoul(text, &end, 10);

	/* strtoul() takes a sign, and makes a small number of a large negative one. */
	if (*text < '0' || *text > '9' || *end || !threads || threads > MOST_THREADS)
		die(FSCK_USAGE, "--threads takes a number from 1 to %d; it was given \"%s\"", MOST_THREADS, text);
	return (unsigned int)threads;
}

static void parse_arguments(struct options *options, int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "no", no_argument, NULL, 'n' },
		{ "yes", no_argument, NULL, 'y' },
		{ "replay", no_argument, NULL, 'r' },
		{ "threads", required_argument, NULL, 'j' },
		{ "force", no_argument, NULL, 'f' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	bool no = false;
	int option;

	*options = (struct options){ .threads = DEFAULT_THREADS };
	while ((option = getopt_long(argc, argv, "nyaprj:fqh", long_options, NULL)) != -1) {
		switch (option) {
		case 'n':
			no = true;
			break;
		case 'y':
		case 'a':
		case 'p':
			options->repair = true;
			break;
		case 'r':
			options->replay = true;
			break;
		case 'j':
			options->threads = parse_threads(optarg);
			break;
		case 'f':
			break;
		case 'q':
			options->quiet = true;
			break;
		case 'h':
			fputs(help, stdout);
			exit(0);
		default:
			die_usage(FSCK_USAGE);
		}
	}
	if (no + options->repair + options->replay > 1)
		die(FSCK_USAGE, "give only one of -n, -y and --replay");
	options->path = only_operand(FSCK_USAGE, argc, argv);
}

/* What is read of the journals must be durable before anything that is replayed is in place. */
static void open_image(struct check *c, const struct options *options)
{
	bool write = options->repair || options->replay;
	int error = image_open(&c->image, options->path, write, LANEFS_BLOCK_SIZE);

	if (!error && write)
		error = device_sync(&c->image.device);
	if (error)
		die_open(FSCK_FAILED, options->path, error);
}

static void start_round(struct check *c)
{
	for (u32 d = 0; d < c->domains; d++) {
		/* Fresh memory: most records of a large table are never touched. */
		free(c->domain[d].records);
		c->domain[d].records = allocate(c->domain_inodes, sizeof(struct record));
		memset(c->domain[d].used, 0,
		       c->domain[d].layout.bbitmap_blocks * LANEFS_BODY_SIZE);
	}
	c->report.found = 0;
	c->files = c->directories = c->others = c->orphans = c->lost_found = 0;
	c->lost_count = 0;
	c->changed = c->stuck = c->revived = false;
	load_inode_bitmaps(c);
	load_block_bitmaps(c);
}

static bool is_sound(const struct check *c)
{
	return !c->report.found && !c->changed;
}

/* Names the stages that were left out because an earlier one found damage; NULL: none. */
static const char *run_stages(struct check *c)
{
	check_inodes(c);
	if (!is_sound(c))
		return "names, links and bitmaps";
	check_names(c);
	if (c->revived)
		return "links and bitmaps";
	if (!is_sound(c))
		return "the bitmaps";
	check_bitmaps(c);
	return NULL;
}

/* Returns the number of orphans that were found. */
static u64 run_rounds(struct check *c)
{
	const char *left_out = NULL;
	u64 orphans = 0;
	int stuck = 0;

	c->repaired_before = false;
	for (int round = 0; round < MOST_ROUNDS && stuck < MOST_STUCK; round += !c->revived) {
		start_round(c);
		left_out = run_stages(c);
		orphans += c->orphans;
		stuck += c->stuck;
		if (!c->changed)
			break;
		c->repaired_before = true;
	}
	if (left_out)
		printf("Not checked, because of the damage above: %s.\n", left_out);
	return orphans;
}

static bool was_unmounted(const struct check *c)
{
	return (le32_to_cpu(c->super.sb_state) & ~LANEFS_STATE_ERROR) == LANEFS_STATE_CLEAN;
}

static void print_replayed(const struct replayed *replayed, const char *how)
{
	printf("The file system was not unmounted. %s %llu transactions (%llu blocks), %llu discarded.\n", how,
	       replayed->transactions, replayed->blocks, replayed->discarded);
}

/* The state to record for an unmounted file system. */
static u32 state_found(const struct check *c)
{
	return LANEFS_STATE_CLEAN | (c->report.found ? LANEFS_STATE_ERROR : 0);
}

/*
 * Replays the journals and makes them void, as a mount does. The record of earlier damage is cleared
 * only when all is repaired, because the check may be interrupted.
 */
static void recover(struct check *c, const struct options *options)
{
	struct replayed replayed;
	bool was_clean = was_unmounted(c);
	u64 found;

	check_super_copies(c);
	replay_journals(c, &replayed);
	found = c->report.found;
	if (!options->quiet && !was_clean)
		print_replayed(&replayed, options->repair ? "Replayed" : "Replayed in memory");
	if (options->repair && (!was_clean || found))
		write_super(c, state_found(c), c->epoch + !was_clean);
	if (options->repair && !was_clean)
		write_empty_journals(c);
}

/* The same without repairs: damage that makes a mount fail is only reported. */
static void replay_only(struct check *c, const struct options *options)
{
	u32 error = le32_to_cpu(c->super.sb_state) & LANEFS_STATE_ERROR;
	struct replayed replayed;

	if (was_unmounted(c) || c->report.found)
		return;
	replay_journals(c, &replayed);
	if (c->report.found)
		return;
	write_super(c, LANEFS_STATE_CLEAN | error, c->epoch + 1);
	write_empty_journals(c);
	if (!options->quiet)
		print_replayed(&replayed, "Replayed");
}

static void print_summary(const struct check *c, u64 orphans, bool repair)
{
	if (orphans)
		printf("%llu orphan inodes (unlinked or truncated when the system stopped)%s.\n", orphans,
		       repair ? ": completed" : "");
	printf("%u domains, %llu files, %llu directories, %llu others: ", c->domains, c->files,
	       c->directories, c->others);
	if (!c->report.found)
		puts(c->report.repaired ? "repaired" : "clean");
	else
		printf("%llu problems%s\n", (unsigned long long)c->report.found,
		       repair ? " are left" : "");
}

static void close_check(struct check *c)
{
	for (u32 d = 0; d < c->domains; d++) {
		free(c->domain[d].records);
		free(c->domain[d].used);
		free(c->domain[d].inode_bits);
		free(c->domain[d].block_bits);
		free(c->domain[d].orphan_bits);
		free(c->domain[d].lost_owners);
	}
	free(c->domain);
	free(c->edits);
	free(c->maps);
	free(c->halves);
	free(c->lost_hashes);
	image_close(&c->image);
}

/* The superblock records damage until all repairs are on the device: half of them are damage. */
static void write_repairs(struct check *c)
{
	if (c->image.changed)
		mark_damaged(c);
	if (c->image.changed || le32_to_cpu(c->super.sb_state) != state_found(c))
		write_super(c, state_found(c), c->epoch);
}

/* All that was found is in c->report when it returns. */
static void check_all(struct check *c, const struct options *options)
{
	u64 before, orphans;

	recover(c, options);
	before = options->repair ? 0 : c->report.found;
	orphans = run_rounds(c);
	c->report.found += before;
	if (options->repair)
		write_repairs(c);
	if (!options->quiet)
		print_summary(c, orphans, options->repair);
}

int main(int argc, char **argv)
{
	struct options options;
	struct check check = { 0 };

	parse_arguments(&options, argc, argv);
	die_memory_code = FSCK_FAILED;
	check.report.repair = options.repair;
	check.threads = options.threads;
	open_image(&check, &options);
	if (load_super(&check)) {
		if (options.replay)
			replay_only(&check, &options);
		else
			check_all(&check, &options);
	}
	close_check(&check);
	return report_code(&check.report);
}
