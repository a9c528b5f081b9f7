// SPDX-License-Identifier: GPL-2.0-only
/* lanefs-dump: shows what is on a lanefs. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "dump.h"
#include "tools/common/arguments.h"
#include "tools/common/die.h"

#define USAGE_CODE 2

static const char help[] =
"Usage: lanefs-dump [--json] DEVICE [WHAT [NUMBER]]\n"
"Shows the metadata of a lanefs as it is on the device, without replaying journals. It\n"
"changes nothing, and can be used while the file system is mounted.\n"
"\n"
"  super             the superblock (default)\n"
"  domain N          the layout of domain N, its free blocks and free inodes\n"
"  inode INO         an inode, with its attributes, extents or entries\n"
"  dir INO           the entries of a directory; of a span directory: remote entries\n"
"  journal N         the transactions in the journal of domain N\n"
"  block N           the header of block N, and whether the block is valid; for a block of\n"
"                    the owner table also the owners of data blocks, in runs\n"
"\n"
"  -b, --super BLOCK use the copy of the superblock in this block\n"
"  -j, --json        print JSON\n"
"  -h, --help        print this text\n"
"\n"
"Inode numbers: domain * 2^40 + index, or DOMAIN:INDEX. The root is 1, or 0:1; the span\n"
"directories of domain 2 begin at 2:8.\n"
"\n"
"Examples:\n"
"  lanefs-dump /dev/vdb\n"
"  lanefs-dump image dir 0:1\n"
"  lanefs-dump --json image journal 3 | jq .transactions[].copies\n"
"\n"
"Exit code: 0 success, 1 failure, 2 wrong arguments.\n";

void read_block(struct dump *dump, u64 number, void *block)
{
	int error = image_read(&dump->image, number, block);

	if (error)
		die(1, "%s: cannot read block %llu: %s", dump->image.device.path, number,
		    strerror(-error));
}

static u64 parse_number(const char *text)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 0);
	if (errno || end == text || *end || text[0] == '-')
		die(USAGE_CODE, "\"%s\" is not a number", text);
	return number;
}

static u64 parse_ino(const char *text)
{
	const char *colon = strchr(text, ':');
	char domain[24];

	if (!colon || (size_t)(colon - text) >= sizeof(domain))
		return parse_number(text);
	memcpy(domain, text, (size_t)(colon - text));
	domain[colon - text] = 0;
	return parse_number(domain) << LANEFS_DOMAIN_SHIFT | parse_number(colon + 1);
}

/* Only what all the rest needs to find its way. */
static void open_dump(struct dump *dump, const char *path, u64 super_block)
{
	int error = image_open(&dump->image, path, false, LANEFS_BLOCK_SIZE);
	u64 start, blocks, inodes;

	if (error)
		die_open(1, path, error);
	read_block(dump, super_block, &dump->super);
	start = le64_to_cpu(dump->super.sb_domain_start);
	blocks = le64_to_cpu(dump->super.sb_domain_blocks);
	inodes = le64_to_cpu(dump->super.sb_domain_inodes);
	dump->domains = le32_to_cpu(dump->super.sb_domains);
	if (le32_to_cpu(dump->super.sb_header.lh_magic) != LANEFS_MAGIC_SUPER)
		die(1, "%s contains no lanefs superblock; --super BLOCK uses a copy", path);
	if (!dump->domains || dump->domains > LANEFS_MAX_DOMAINS || start > dump->image.blocks ||
	    blocks > (dump->image.blocks - start) / dump->domains ||
	    le32_to_cpu(dump->super.sb_journal_blocks) > blocks ||
	    !dump->super.sb_journal_blocks || inodes > blocks * LANEFS_INODES_PER_BLOCK)
		die(1, "%s: the superblock has invalid sizes; --super BLOCK uses a copy", path);
	dump->layout = allocate(dump->domains, sizeof(*dump->layout));
	for (u32 d = 0; d < dump->domains; d++) {
		lanefs_domain_layout(&dump->layout[d], d, start, blocks, inodes,
				     le32_to_cpu(dump->super.sb_journal_blocks),
				     le64_to_cpu(dump->super.sb_incompat));
		if (dump->layout[d].data > dump->layout[d].end)
			die(1, "%s: the superblock has invalid sizes; --super BLOCK uses a copy", path);
	}
}

static json_t *show(struct dump *dump, const char *what, const char *number)
{
	if (!strcmp(what, "super") && !number)
		return super_json(dump);
	if (!number)
		die(USAGE_CODE, "\"%s\" needs a number; try --help", what);
	if (!strcmp(what, "domain"))
		return domain_json(dump, parse_number(number));
	if (!strcmp(what, "inode"))
		return inode_json(dump, parse_ino(number));
	if (!strcmp(what, "dir"))
		return directory_json(dump, parse_ino(number));
	if (!strcmp(what, "journal"))
		return journal_json(dump, parse_number(number));
	if (!strcmp(what, "block"))
		return block_json(dump, parse_number(number));
	die(USAGE_CODE, "\"%s\" is not a command; try --help", what);
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "super", required_argument, NULL, 'b' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct dump dump = { 0 };
	u64 super_block = 0;
	bool as_json = false;
	json_t *json;
	int option;

	while ((option = getopt_long(argc, argv, "jb:h", long_options, NULL)) != -1) {
		switch (option) {
		case 'j':
			as_json = true;
			break;
		case 'b':
			super_block = parse_number(optarg);
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			die_usage(USAGE_CODE);
		}
	}
	if (argc - optind < 1 || argc - optind > 3)
		die(USAGE_CODE, "give a device or file, and what to show; try --help");
	open_dump(&dump, argv[optind], super_block);
	json = show(&dump, argc - optind > 1 ? argv[optind + 1] : "super",
		    argc - optind > 2 ? argv[optind + 2] : NULL);
	if (!json)
		die(1, "out of memory");
	if (as_json) {
		json_dumpf(json, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		print_text(json);
	}
	json_decref(json);
	free(dump.layout);
	image_close(&dump.image);
	return 0;
}
