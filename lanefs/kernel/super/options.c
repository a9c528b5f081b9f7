// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mount options. One that has values is a line of lanefs_parameters and one of lanefs_choices; the
 * value that comes first in its list is the default.
 */
#include <linux/blkdev.h>
#include <linux/fs_context.h>
#include <linux/seq_file.h>

#include "super/super.h"

static const struct constant_table lanefs_placements[] = {
	{ "lane", LANEFS_PLACE_LANE },
	{ "roundrobin", LANEFS_PLACE_ROUNDROBIN },
	{ "single", LANEFS_PLACE_SINGLE },
	{}
};

static const struct constant_table lanefs_journals[] = {
	{ "concurrent", LANEFS_JOURNAL_CONCURRENT },
	{ "parallel", LANEFS_JOURNAL_PARALLEL },
	{ "serial", LANEFS_JOURNAL_SERIAL },
	{}
};

static const struct constant_table lanefs_victims_values[] = {
	{ "greedy", LANEFS_VICTIMS_GREEDY },
	{ "costbenefit", LANEFS_VICTIMS_COSTBENEFIT },
	{}
};

static const struct constant_table lanefs_stricts[] = {
	{ "off", LANEFS_STRICT_OFF },
	{ "on", LANEFS_STRICT_ON },
	{}
};

static const struct constant_table lanefs_mechanisms[] = {
	{ "inodes", LANEFS_ABLATE_INODES },
	{ "iolock", LANEFS_ABLATE_IOLOCK },
	{ "readpath", LANEFS_ABLATE_READPATH },
	{ "fsync", LANEFS_ABLATE_FSYNC },
	{ "recovery", LANEFS_ABLATE_RECOVERY },
	{ "gc", LANEFS_ABLATE_GC },
	{ "svp", LANEFS_ABLATE_SVP },
	{ "dws", LANEFS_ABLATE_DWS },
	{ "lsu", LANEFS_ABLATE_LSU },
	{ "cvs", LANEFS_ABLATE_CVS },
	{ "dpb", LANEFS_ABLATE_DPB },
	{ "none", 0 },
	{}
};

enum {
	LANEFS_OPTION_PLACEMENT,
	LANEFS_OPTION_JOURNAL,
	LANEFS_OPTION_VICTIMS,
	LANEFS_OPTION_STRICT,
	LANEFS_OPTION_ABLATE,
	LANEFS_OPTION_DISCARD,
	LANEFS_OPTION_NORECOVERY,
};

const struct fs_parameter_spec lanefs_parameters[] = {
	fsparam_enum("placement", LANEFS_OPTION_PLACEMENT, lanefs_placements),
	fsparam_enum("journal", LANEFS_OPTION_JOURNAL, lanefs_journals),
	fsparam_enum("victims", LANEFS_OPTION_VICTIMS, lanefs_victims_values),
	fsparam_enum("strict", LANEFS_OPTION_STRICT, lanefs_stricts),
	fsparam_string("ablate", LANEFS_OPTION_ABLATE),
	fsparam_flag_no("discard", LANEFS_OPTION_DISCARD),
	fsparam_flag("norecovery", LANEFS_OPTION_NORECOVERY),
	{}
};

/* By option: where its value is in struct lanefs_options, and what it is for. */
static const struct {
	const struct constant_table *values;
	size_t at;
	bool log;	/* refused where there is no log */
} lanefs_choices[] = {
	[LANEFS_OPTION_PLACEMENT] = { lanefs_placements, offsetof(struct lanefs_options, placement) },
	[LANEFS_OPTION_JOURNAL] = { lanefs_journals, offsetof(struct lanefs_options, journal) },
	[LANEFS_OPTION_VICTIMS] = { lanefs_victims_values, offsetof(struct lanefs_options, victims),
				    true },
	[LANEFS_OPTION_STRICT] = { lanefs_stricts, offsetof(struct lanefs_options, strict), true },
};

static unsigned int lanefs_option_get(const struct lanefs_options *options, unsigned int option)
{
	return *(const unsigned int *)((const void *)options + lanefs_choices[option].at);
}

static void lanefs_option_set(struct lanefs_options *options, unsigned int option,
			      unsigned int value)
{
	WRITE_ONCE(*(unsigned int *)((void *)options + lanefs_choices[option].at), value);
}

/* Names of lanefs_mechanisms with a plus sign between two. */
static int lanefs_parse_ablate(struct fs_context *fc, char *list, unsigned int *ablate)
{
	unsigned int found = 0;
	const char *name;
	int mechanism;

	while ((name = strsep(&list, "+"))) {
		mechanism = lookup_constant(lanefs_mechanisms, name, -1);
		if (mechanism < 0)
			return invalf(fc, "ablate: there is no mechanism '%s'", name);
		found |= mechanism;
	}
	*ablate = found;
	return 0;
}

int lanefs_parse_param(struct fs_context *fc, struct fs_parameter *param)
{
	struct lanefs_options *options = &((struct lanefs_sb *)fc->s_fs_info)->s_options;
	struct fs_parse_result result;
	int option = fs_parse(fc, lanefs_parameters, param, &result);

	if (option < 0)
		return option;
	if (option == LANEFS_OPTION_ABLATE)
		return lanefs_parse_ablate(fc, param->string, &options->ablate);
	if (option == LANEFS_OPTION_DISCARD)
		options->discard = !result.negated;
	else if (option == LANEFS_OPTION_NORECOVERY)
		options->norecovery = true;
	else
		lanefs_option_set(options, option, result.uint_32);
	return 0;
}

int lanefs_show_options(struct seq_file *seq, struct dentry *root)
{
	const struct lanefs_options *options = &LANEFS_SB(root->d_sb)->s_options;
	const struct constant_table *mechanism;
	const char *separator = ",ablate=";
	unsigned int option, value;

	for (option = 0; option < ARRAY_SIZE(lanefs_choices); option++) {
		value = lanefs_option_get(options, option);
		if (!lanefs_choices[option].log || lanefs_is_log(root->d_sb))
			seq_printf(seq, ",%s=%s", lanefs_parameters[option].name,
				   lanefs_choices[option].values[value].name);
	}
	for (mechanism = lanefs_mechanisms; mechanism->value; mechanism++) {
		if (!(options->ablate & mechanism->value))
			continue;
		seq_printf(seq, "%s%s", separator, mechanism->name);
		separator = "+";
	}
	if (options->discard)
		seq_puts(seq, ",discard");
	if (options->norecovery)
		seq_puts(seq, ",norecovery");
	return 0;
}

/* Whether a remount makes it read-only; without the flag (fsconfig) it stays as it is. */
bool lanefs_remount_read_only(const struct super_block *sb, const struct fs_context *fc)
{
	return fc->sb_flags_mask & SB_RDONLY ? fc->sb_flags & SB_RDONLY : sb_rdonly(sb);
}

/* Whether the file system, whose superblock was read, can do what is asked for; it says why not. */
int lanefs_check_features(struct super_block *sb, const struct lanefs_options *asked,
			  struct fs_context *fc)
{
	unsigned int option, value;

	for (option = 0; option < ARRAY_SIZE(lanefs_choices) && !lanefs_is_log(sb); option++) {
		value = lanefs_option_get(asked, option);
		if (lanefs_choices[option].log && value)
			return invalf(fc, "%s=%s needs a file system made with mkfs.lanefs --alloc log",
				      lanefs_parameters[option].name,
				      lanefs_choices[option].values[value].name);
	}
	if ((asked->ablate & LANEFS_ABLATE_LOG) && !lanefs_is_log(sb))
		return invalf(fc, "ablate: gc, svp, dws, lsu, cvs and dpb need a file system made with mkfs.lanefs --alloc log");
	return 0;
}

/* Whether a mount, or with `now` a remount, may have what is asked for; it says why not. */
int lanefs_check_options(struct super_block *sb, const struct lanefs_options *asked,
			 const struct lanefs_options *now, struct fs_context *fc)
{
	bool read_only = now ? lanefs_remount_read_only(sb, fc) : sb_rdonly(sb);

	/* An option that would do nothing is refused. */
	if (asked->discard && !bdev_max_discard_sectors(sb->s_bdev))
		return invalf(fc, "discard: the device does not support it");
	if (now && (asked->ablate ^ now->ablate) & LANEFS_ABLATE_FIXED)
		return invalf(fc, "ablate: inodes and recovery cannot be changed by a remount: unmount first");
	if (now && lanefs_check_features(sb, asked, fc))
		return -EINVAL;
	if (now && asked->norecovery != now->norecovery)
		return invalf(fc, "norecovery cannot be changed by a remount: unmount first");
	if (asked->norecovery && !read_only)
		return invalf(fc, now ? "mounted with norecovery: unmount, and mount without it" :
					"norecovery needs a read-only mount: mount -o ro,norecovery");
	return 0;
}

/* Applies the options of a remount that may change. */
void lanefs_take_options(struct lanefs_options *now, const struct lanefs_options *asked)
{
	unsigned int option;

	for (option = 0; option < ARRAY_SIZE(lanefs_choices); option++)
		lanefs_option_set(now, option, lanefs_option_get(asked, option));
	WRITE_ONCE(now->ablate, asked->ablate);
	WRITE_ONCE(now->discard, asked->discard);
}
