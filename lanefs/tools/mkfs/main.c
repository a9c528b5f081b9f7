// SPDX-License-Identifier: GPL-2.0-only
/* mkfs.lanefs: makes an empty lanefs. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/fs.h>
#include <uuid/uuid.h>

#include "format.h"
#include "geometry.h"
#include "signature.h"
#include "tools/common/arguments.h"
#include "tools/common/die.h"
#include "write.h"

#define USAGE_CODE 2

static const char help[] =
"Usage: mkfs.lanefs [OPTION]... DEVICE [BLOCKS]\n"
"Makes an empty lanefs on a block device, or in a file. It uses all of it, or only the\n"
"first BLOCKS blocks.\n"
"\n"
"  -b, --block-size SIZE size of a block, of which BLOCKS are counted: 4096, no other\n"
"  -d, --domains N       divide the device into N domains (default: one per CPU, at most 64,\n"
"                        and none smaller than 32 MiB)\n"
"  -J, --journal SIZE    size of each domain's journal, such as 16M (default: 1/16 of the\n"
"                        domain, from 4M to 64M)\n"
"  -i, --inodes N        inodes of the whole file system (default: one per 16 KiB, per\n"
"                        8 KiB on a device below 4 GiB, and per 4 KiB below 512 MiB)\n"
"  -s, --size SIZE       the same as BLOCKS in bytes, such as 256M\n"
"  -A, --alloc KIND      extent: overwrite data in place (default); log: write new data to\n"
"                        free segments and leave the old data in place (log-structured)\n"
"  -L, --label NAME      volume label, at most 32 bytes\n"
"  -U, --uuid UUID       UUID of the file system (default: random)\n"
"  -f, --force           overwrite an existing file system or partition table\n"
"  -K, --no-discard      do not discard the device's blocks first\n"
"  -q, --quiet           print errors only\n"
"  -V, --version         print the version of the format that it writes\n"
"  -h, --help            print this text\n"
"\n"
"Examples:\n"
"  mkfs.lanefs /dev/vdb\n"
"  mkfs.lanefs -f --domains 8 --label scratch /dev/vdb\n"
"  mkfs.lanefs --alloc log /dev/vdb\n"
"  mkfs.lanefs -b 4096 /dev/vdb 65536\n"
"  truncate -s 1G image && mkfs.lanefs --domains 4 image\n"
"\n"
"Exit code: 0 success, 1 failure, 2 wrong arguments.\n";

struct options {
	struct wishes wishes;
	struct identity identity;
	const char *path;
	uint64_t size;	/* bytes; 0: the device's */
	bool force, discard, quiet;
};

/* A number with an optional K, M, G or T (if @units). */
static uint64_t parse_number(const char *name, const char *text, bool units)
{
	unsigned long long number;
	const char *letters = "KMGT", *letter;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || !number)
		die(USAGE_CODE, "%s takes a number above 0; it was given \"%s\"", name, text);
	if (errno)
		die(USAGE_CODE, "%s: %s is too large", name, text);
	if (!*end)
		return number;
	letter = strchr(letters, *end);
	if (!units || !letter || end[1])
		die(USAGE_CODE, "%s takes a number%s; it was given \"%s\"", name,
		    units ? ", optionally with K, M, G or T" : "", text);
	for (int i = 0; i <= letter - letters; i++)
		if (__builtin_mul_overflow(number, 1024, &number))
			die(USAGE_CODE, "%s: %s is too large", name, text);
	return number;
}

/* A size near the end of what a number can hold must not become a small one by rounding up. */
static uint64_t parse_blocks(const char *name, const char *text)
{
	uint64_t bytes = parse_number(name, text, true);

	return bytes / LANEFS_BLOCK_SIZE + !!(bytes % LANEFS_BLOCK_SIZE);
}

static void check_block_size(const char *text)
{
	uint64_t size = parse_number("--block-size", text, true);

	if (size != LANEFS_BLOCK_SIZE)
		die(USAGE_CODE, "--block-size: lanefs has blocks of %d bytes only, not of %llu",
		    LANEFS_BLOCK_SIZE, (unsigned long long)size);
}

/* The size in bytes of as many blocks. */
static uint64_t parse_block_count(const char *text)
{
	uint64_t size;

	if (__builtin_mul_overflow(parse_number("BLOCKS", text, false), LANEFS_BLOCK_SIZE, &size))
		die(USAGE_CODE, "BLOCKS: %s is too large", text);
	return size;
}

/* Whether it is log-structured. */
static bool parse_alloc(const char *text)
{
	if (strcmp(text, "log") && strcmp(text, "extent"))
		die(USAGE_CODE, "--alloc takes extent or log; it was given \"%s\"", text);
	return !strcmp(text, "log");
}

static void parse_arguments(struct options *options, int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "block-size", required_argument, NULL, 'b' },
		{ "domains", required_argument, NULL, 'd' },
		{ "journal", required_argument, NULL, 'J' },
		{ "inodes", required_argument, NULL, 'i' },
		{ "size", required_argument, NULL, 's' },
		{ "alloc", required_argument, NULL, 'A' },
		{ "label", required_argument, NULL, 'L' },
		{ "uuid", required_argument, NULL, 'U' },
		{ "force", no_argument, NULL, 'f' },
		{ "no-discard", no_argument, NULL, 'K' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	*options = (struct options){ .discard = true };
	uuid_generate(options->identity.uuid);
	while ((option = getopt_long(argc, argv, "b:d:J:i:s:A:L:U:fKqVh", long_options,
				     NULL)) != -1) {
		switch (option) {
		case 'b':
			check_block_size(optarg);
			break;
		case 'd':
			options->wishes.domains = parse_number("--domains", optarg, false);
			break;
		case 'J':
			options->wishes.journal_blocks = parse_blocks("--journal", optarg);
			break;
		case 'i':
			options->wishes.inodes = parse_number("--inodes", optarg, false);
			break;
		case 's':
			options->size = parse_number("--size", optarg, true);
			break;
		case 'A':
			options->wishes.log = parse_alloc(optarg);
			break;
		case 'L':
			if (strlen(optarg) >= sizeof(options->identity.label))
				die(USAGE_CODE, "--label: \"%s\" has more than 32 bytes", optarg);
			strcpy(options->identity.label, optarg);
			break;
		case 'U':
			if (uuid_parse(optarg, options->identity.uuid))
				die(USAGE_CODE, "--uuid takes a UUID; it was given \"%s\"", optarg);
			break;
		case 'f':
			options->force = true;
			break;
		case 'K':
			options->discard = false;
			break;
		case 'q':
			options->quiet = true;
			break;
		case 'V':
			printf("mkfs.lanefs, format %d\n", LANEFS_VERSION);
			exit(0);
		case 'h':
			fputs(help, stdout);
			exit(0);
		default:
			die_usage(USAGE_CODE);
		}
	}
	if (argc - optind == 2) {
		if (options->size)
			die(USAGE_CODE, "give --size or BLOCKS, not both");
		options->size = parse_block_count(argv[--argc]);
	}
	options->path = only_operand(USAGE_CODE, argc, argv);
}

static void open_target(struct device *device, const char *path)
{
	int error = device_open(device, path, true);

	if (error)
		die_open(1, path, error);
}

/* The bytes to use of the device. */
static uint64_t choose_size(const struct options *options, const struct device *device)
{
	if (options->size > device->size)
		die(1, "%s has %llu bytes (%llu blocks): too few for a size of %llu bytes",
		    options->path, (unsigned long long)device->size,
		    (unsigned long long)device->size / LANEFS_BLOCK_SIZE,
		    (unsigned long long)options->size);
	return options->size ? options->size : device->size;
}

/* Tells the device that nothing on it is needed. Not every device can take that: no error. */
static void discard_all(const struct device *device)
{
	uint64_t range[2] = { 0, device->size };

	if (device->block)
		(void)!ioctl(device->fd, BLKDISCARD, range);
}

static void print_summary(const struct options *options, const struct geometry *g)
{
	char uuid[UUID_STR_LEN];

	uuid_unparse(options->identity.uuid, uuid);
	printf("%s: lanefs %s, %llu MiB%s\n", options->path, uuid,
	       (unsigned long long)g->blocks * LANEFS_BLOCK_SIZE >> 20,
	       g->incompat & LANEFS_INCOMPAT_LOG ? ", log-structured" : "");
	printf("%u domains, each: %llu blocks of 4 KiB, %llu inodes, a journal of %u blocks\n",
	       g->domains, (unsigned long long)g->domain_blocks,
	       (unsigned long long)g->domain_inodes, g->journal_blocks);
}

int main(int argc, char **argv)
{
	struct options options;
	struct geometry geometry;
	struct device device;
	uint64_t size;

	parse_arguments(&options, argc, argv);
	open_target(&device, options.path);
	size = choose_size(&options, &device);
	if (!options.force)
		refuse_known_content(&device);
	choose_geometry(&geometry, size, &options.wishes, sysconf(_SC_NPROCESSORS_CONF));
	if (options.force)
		wipe_signatures(&device);
	if (options.discard)
		discard_all(&device);
	write_file_system(&device, &geometry, &options.identity);
	if (!options.quiet)
		print_summary(&options, &geometry);
	device_close(&device);
	return 0;
}
