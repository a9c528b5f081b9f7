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

static const struct constant_table lanefs_inodes_values[] = {
	{ "lane", LANEFS_INODES_LANE },
	{ "vfs", LANEFS_INODES_VFS },
	{}
};

static const struct constant_table lanefs_iolocks[] = {
	{ "range", LANEFS_IOLOCK_RANGE },
	{ "inode", LANEFS_IOLOCK_INODE },
	{}
};

static const struct constant_table lanefs_readpaths[] = {
	{ "rcu", LANEFS_READPATH_RCU },
	{ "ref", LANEFS_READPATH_REF },
	{}
};

static const struct constant_table lanefs_fsyncs[] = {
	{ "lane", LANEFS_FSYNC_LANE },
	{ "vfs", LANEFS_FSYNC_VFS },
	{}
};

static const struct constant_table lanefs_recoveries[] = {
	{ "parallel", LANEFS_RECOVERY_PARALLEL },
	{ "serial", LANEFS_RECOVERY_SERIAL },
	{}
};

static const struct constant_table lanefs_journals[] = {
	{ "concurrent", LANEFS_JOURNAL_CONCURRENT },
	{ "parallel", LANEFS_JOURNAL_PARALLEL },
	{ "serial", LANEFS_JOURNAL_SERIAL },
	{}
};

static const struct constant_table lanefs_gcs[] = {
	{ "percore", LANEFS_GC_PERCORE },
	{ "single", LANEFS_GC_SINGLE },
	{}
};

static const struct constant_table lanefs_victims_values[] = {
	{ "greedy", LANEFS_VICTIMS_GREEDY },
	{ "costbenefit", LANEFS_VICTIMS_COSTBENEFIT },
	{}
};

static const struct constant_table lanefs_techniques[] = {
	{ "on", LANEFS_TECHNIQUE_ON },
	{ "off", LANEFS_TECHNIQUE_OFF },
	{}
};

static const struct constant_table lanefs_stricts[] = {
	{ "off", LANEFS_STRICT_OFF },
	{ "on", LANEFS_STRICT_ON },
	{}
};

enum {
	LANEFS_OPTION_PLACEMENT,
	LANEFS_OPTION_INODES,
	LANEFS_OPTION_IOLOCK,
	LANEFS_OPTION_READPATH,
	LANEFS_OPTION_FSYNC,
	LANEFS_OPTION_RECOVERY,
	LANEFS_OPTION_JOURNAL,
	LANEFS_OPTION_GC,
	LANEFS_OPTION_VICTIMS,
	LANEFS_OPTION_SVP,
	LANEFS_OPTION_DWS,
	LANEFS_OPTION_LSU,
	LANEFS_OPTION_CVS,
	LANEFS_OPTION_DPB,
	LANEFS_OPTION_STRICT,
	LANEFS_OPTION_DISCARD,
	LANEFS_OPTION_NORECOVERY,
};

const struct fs_parameter_spec lanefs_parameters[] = {
	fsparam_enum("placement", LANEFS_OPTION_PLACEMENT, lanefs_placements),
	fsparam_enum("inodes", LANEFS_OPTION_INODES, lanefs_inodes_values),
	fsparam_enum("iolock", LANEFS_OPTION_IOLOCK, lanefs_iolocks),
	fsparam_enum("readpath", LANEFS_OPTION_READPATH, lanefs_readpaths),
	fsparam_enum("fsync", LANEFS_OPTION_FSYNC, lanefs_fsyncs),
	fsparam_enum("recovery", LANEFS_OPTION_RECOVERY, lanefs_recoveries),
	fsparam_enum("journal", LANEFS_OPTION_JOURNAL, lanefs_journals),
	fsparam_enum("gc", LANEFS_OPTION_GC, lanefs_gcs),
	fsparam_enum("victims", LANEFS_OPTION_VICTIMS, lanefs_victims_values),
	fsparam_enum("svp", LANEFS_OPTION_SVP, lanefs_techniques),
	fsparam_enum("dws", LANEFS_OPTION_DWS, lanefs_techniques),
	fsparam_enum("lsu", LANEFS_OPTION_LSU, lanefs_techniques),
	fsparam_enum("cvs", LANEFS_OPTION_CVS, lanefs_techniques),
	fsparam_enum("dpb", LANEFS_OPTION_DPB, lanefs_techniques),
	fsparam_enum("strict", LANEFS_OPTION_STRICT, lanefs_stricts),
	fsparam_flag_no("discard", LANEFS_OPTION_DISCARD),
	fsparam_flag("norecovery", LANEFS_OPTION_NORECOVERY),
	{}
};

#define LANEFS_LOG_CHOICE(member, values) { values, offsetof(struct lanefs_options, member), false, true }

/* By option: where its value is in struct lanefs_options, and what it is for. */
static const struct {
	const struct constant_table *values;
	size_t at;
	bool fixed;	/* a remount does not change it */
	bool log;	/* refused where there is no log */
} lanefs_choices[] = {
	[LANEFS_OPTION_PLACEMENT] = { lanefs_placements, offsetof(struct lanefs_options, placement) },
	[LANEFS_OPTION_INODES] = { lanefs_inodes_values, offsetof(struct lanefs_options, inodes), true },
	[LANEFS_OPTION_IOLOCK] = { lanefs_iolocks, offsetof(struct lanefs_options, iolock) },
	[LANEFS_OPTION_READPATH] = { lanefs_readpaths, offsetof(struct lanefs_options, readpath) },
	[LANEFS_OPTION_FSYNC] = { lanefs_fsyncs, offsetof(struct lanefs_options, fsync) },
	[LANEFS_OPTION_RECOVERY] = { lanefs_recoveries, offsetof(struct lanefs_options, recovery), true },
	[LANEFS_OPTION_JOURNAL] = { lanefs_journals, offsetof(struct lanefs_options, journal) },
	[LANEFS_OPTION_GC] = LANEFS_LOG_CHOICE(gc, lanefs_gcs),
	[LANEFS_OPTION_VICTIMS] = LANEFS_LOG_CHOICE(victims, lanefs_victims_values),
	[LANEFS_OPTION_SVP] = LANEFS_LOG_CHOICE(svp, lanefs_techniques),
	[LANEFS_OPTION_DWS] = LANEFS_LOG_CHOICE(dws, lanefs_techniques),
	[LANEFS_OPTION_LSU] = LANEFS_LOG_CHOICE(lsu, lanefs_techniques),
	[LANEFS_OPTION_CVS] = LANEFS_LOG_CHOICE(cvs, lanefs_techniques),
	[LANEFS_OPTION_DPB] = LANEFS_LOG_CHOICE(dpb, lanefs_techniques),
	[LANEFS_OPTION_STRICT] = LANEFS_LOG_CHOICE(strict, lanefs_stricts),
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

int lanefs_parse_param(struct fs_context *fc, struct fs_parameter *param)
{
	struct lanefs_options *options = &((struct lanefs_sb *)fc->s_fs_info)->s_options;
	struct fs_parse_result result;
	int option = fs_parse(fc, lanefs_parameters, param, &result);

	if (option < 0)
		return option;
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
	unsigned int option;

	for (option = 0; option < ARRAY_SIZE(lanefs_choices); option++)
		if (!lanefs_choices[option].log || lanefs_is_log(root->d_sb))
			seq_printf(seq, ",%s=%s", lanefs_parameters[option].name,
				   lanefs_choices[option].values[lanefs_option_get(options,
										   option)].name);
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
	return 0;
}

/* Whether a mount, or with `now` a remount, may have what is asked for; it says why not. */
int lanefs_check_options(struct super_block *sb, const struct lanefs_options *asked,
			 const struct lanefs_options *now, struct fs_context *fc)
{
	bool read_only = now ? lanefs_remount_read_only(sb, fc) : sb_rdonly(sb);
	unsigned int option;

	/* An option that would do nothing is refused. */
	if (asked->discard && !bdev_max_discard_sectors(sb->s_bdev))
		return invalf(fc, "discard: the device does not support it");
	for (option = 0; now && option < ARRAY_SIZE(lanefs_choices); option++)
		if (lanefs_choices[option].fixed &&
		    lanefs_option_get(asked, option) != lanefs_option_get(now, option))
			return invalf(fc, "%s= cannot be changed by a remount: unmount first",
				      lanefs_parameters[option].name);
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
	WRITE_ONCE(now->discard, asked->discard);
}
