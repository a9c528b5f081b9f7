// SPDX-License-Identifier: GPL-2.0-only
/* /sys/fs/lanefs/DEVICE: what the segments of a log and its collectors do, and when these begin. */
#include <linux/kobject.h>
#include <linux/sysfs.h>

#include "super/super.h"

static struct kobject *lanefs_root;

static struct lanefs_sb *lanefs_kobj_sb(struct kobject *kobj)
{
	return container_of(kobj, struct lanefs_sb, s_kobj);
}

/* The sum of a counter of all domains, which is at `offset`. */
static ssize_t lanefs_sum_show(struct kobject *kobj, size_t offset, char *page)
{
	struct lanefs_sb *sbi = lanefs_kobj_sb(kobj);
	u64 sum = 0;
	u32 i;

	for (i = 0; i < sbi->s_domains; i++)
		sum += atomic64_read((void *)sbi->s_domain[i] + offset);
	return sysfs_emit(page, "%llu\n", sum);
}

#define LANEFS_SUM(name, member)								\
static ssize_t name##_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)	\
{												\
	return lanefs_sum_show(kobj, offsetof(struct lanefs_domain, member), page);		\
}												\
static struct kobj_attribute lanefs_attr_##name = __ATTR_RO(name)

LANEFS_SUM(victims, d_victims);
LANEFS_SUM(blocks_moved, d_moved);
LANEFS_SUM(holes_filled, d_holes);
LANEFS_SUM(stalls, d_stalls);
LANEFS_SUM(stall_ns, d_stalled);

static ssize_t segments_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	struct lanefs_sb *sbi = lanefs_kobj_sb(kobj);
	u64 sum = 0;
	u32 i;

	for (i = 0; i < sbi->s_domains; i++)
		sum += sbi->s_domain[i]->d_log_segments;
	return sysfs_emit(page, "%llu\n", sum);
}
static struct kobj_attribute lanefs_attr_segments = __ATTR_RO(segments);

static ssize_t segments_free_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	struct lanefs_sb *sbi = lanefs_kobj_sb(kobj);
	int err = lanefs_count_wait(sbi);
	u64 sum = 0;
	u32 i;

	if (err)
		return err;
	for (i = 0; i < sbi->s_domains; i++)
		sum += atomic_read(&sbi->s_domain[i]->d_segments_free);
	return sysfs_emit(page, "%llu\n", sum);
}
static struct kobj_attribute lanefs_attr_segments_free = __ATTR_RO(segments_free);

/* Counts segments with no block in use, up to 1/32 of their blocks, up to 2/32, ..., all. */
static ssize_t segments_valid_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	u64 segments[LANEFS_VALID_PARTS + 1] = {};
	struct lanefs_sb *sbi = lanefs_kobj_sb(kobj);
	int err = lanefs_count_wait(sbi), length = 0;
	u32 i;

	if (err)
		return err;
	for (i = 0; i < sbi->s_domains; i++)
		lanefs_segments_valid(sbi->s_domain[i], segments);
	for (i = 0; i <= LANEFS_VALID_PARTS; i++)
		length += sysfs_emit_at(page, length, "%llu%c", segments[i],
					i < LANEFS_VALID_PARTS ? ' ' : '\n');
	return length;
}
static struct kobj_attribute lanefs_attr_segments_valid = __ATTR_RO(segments_valid);

static ssize_t gc_low_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	return sysfs_emit(page, "%u\n", READ_ONCE(lanefs_kobj_sb(kobj)->s_gc_low));
}

static ssize_t gc_low_store(struct kobject *kobj, struct kobj_attribute *attr, const char *text,
			    size_t size)
{
	unsigned int percent;
	int err = kstrtouint(text, 0, &percent);

	if (err || percent > 100)
		return err ?: -ERANGE;
	WRITE_ONCE(lanefs_kobj_sb(kobj)->s_gc_low, percent);
	return size;
}
static struct kobj_attribute lanefs_attr_gc_low = __ATTR_RW(gc_low);

static struct attribute *lanefs_attrs[] = {
	&lanefs_attr_segments.attr,
	&lanefs_attr_segments_free.attr,
	&lanefs_attr_segments_valid.attr,
	&lanefs_attr_victims.attr,
	&lanefs_attr_blocks_moved.attr,
	&lanefs_attr_holes_filled.attr,
	&lanefs_attr_stalls.attr,
	&lanefs_attr_stall_ns.attr,
	&lanefs_attr_gc_low.attr,
	NULL,
};
ATTRIBUTE_GROUPS(lanefs);

static void lanefs_kobj_release(struct kobject *kobj)
{
	complete(&lanefs_kobj_sb(kobj)->s_kobj_gone);
}

static const struct kobj_type lanefs_ktype = {
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = lanefs_groups,
	.release = lanefs_kobj_release,
};

/* Whether it succeeds or not, lanefs_sysfs_stop() is to follow. */
int lanefs_sysfs_start(struct lanefs_sb *sbi)
{
	if (!lanefs_is_log(sbi->s_vfs))
		return 0;
	init_completion(&sbi->s_kobj_gone);
	return kobject_init_and_add(&sbi->s_kobj, &lanefs_ktype, lanefs_root, "%s",
				    sbi->s_vfs->s_id);
}

/* Nobody reads or writes an attribute any more. */
void lanefs_sysfs_stop(struct lanefs_sb *sbi)
{
	if (!sbi->s_kobj.state_initialized)
		return;
	if (sbi->s_kobj.state_in_sysfs)
		kobject_del(&sbi->s_kobj);
	kobject_put(&sbi->s_kobj);
	wait_for_completion(&sbi->s_kobj_gone);
}

int __init lanefs_sysfs_init(void)
{
	lanefs_root = kobject_create_and_add("lanefs", fs_kobj);
	return lanefs_root ? 0 : -ENOMEM;
}

void lanefs_sysfs_exit(void)
{
	kobject_put(lanefs_root);
}
