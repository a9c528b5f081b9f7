// SPDX-License-Identifier: GPL-2.0-only
/* Mount, unmount and what concerns the whole file system. */
#include <linux/blkdev.h>
#include <linux/fs_context.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/statfs.h>

#include "super/super.h"

static struct kmem_cache *lanefs_domain_cache;
static struct lock_class_key lanefs_handle_key;

static unsigned int lanefs_gc_low = 2;
module_param_named(gc_low, lanefs_gc_low, uint, 0644);
MODULE_PARM_DESC(gc_low, "percent of free segments below which garbage collection of a log begins; read at mount");

/* In memory of the node of the CPU whose lane it is. */
static int lanefs_domain_new(struct lanefs_sb *sbi, u32 id)
{
	int node = id < nr_cpu_ids && cpu_possible(id) ? cpu_to_node(id) : NUMA_NO_NODE;
	struct lanefs_domain *domain = kmem_cache_alloc_node(lanefs_domain_cache,
							     GFP_KERNEL | __GFP_ZERO, node);
	int err;

	if (!domain)
		return -ENOMEM;
	sbi->s_domain[id] = domain;
	domain->d_sbi = sbi;
	domain->d_id = id;
	lanefs_domain_layout(&domain->d_layout, id, sbi->s_domain_start, sbi->s_domain_blocks,
			     sbi->s_domain_inodes,
			     le32_to_cpu(lanefs_super_of(sbi)->sb_journal_blocks), sbi->s_incompat);
	lanefs_count_init(domain);
	lanefs_discard_init(domain);
	mutex_init(&domain->d_span_mutex);
	init_waitqueue_head(&domain->d_inode_wait);
	domain->d_slots = alloc_percpu(struct lanefs_slot);
	if (!domain->d_slots)
		return -ENOMEM;
	domain->d_journal = lanefs_journal_new(sbi, id, &domain->d_layout,
					       &domain->d_slots->s_state, node);
	if (!domain->d_journal)
		return -ENOMEM;
	sbi->s_journal[id] = domain->d_journal;
	lanefs_space_init(domain);
	err = lanefs_shards_start(domain);
	if (!err)
		err = percpu_counter_init(&domain->d_inodes_free, 0, GFP_KERNEL);
	return err ?: percpu_counter_init(&domain->d_unlinked, 0, GFP_KERNEL);
}

static void lanefs_free_sb(struct lanefs_sb *sbi)
{
	struct lanefs_domain *domain;
	u32 i;

	lanefs_count_stop(sbi);
	lanefs_sysfs_stop(sbi);
	if (sbi->s_io_done)
		destroy_workqueue(sbi->s_io_done);
	if (sbi->s_collect)
		destroy_workqueue(sbi->s_collect);
	/* The first that is not there ends them: there was no memory for it. */
	for (i = 0; i < sbi->s_domains && sbi->s_domain[i]; i++) {
		domain = sbi->s_domain[i];
		lanefs_gc_stop(domain);
		lanefs_groups_stop(domain);
		lanefs_ibitmaps_stop(domain);
		lanefs_shards_stop(domain);
		lanefs_journal_free(domain->d_journal);
		free_percpu(domain->d_slots);
		percpu_counter_destroy(&domain->d_inodes_free);
		percpu_counter_destroy(&domain->d_unlinked);
		kmem_cache_free(lanefs_domain_cache, domain);
	}
	kvfree(sbi->s_journal);
	kvfree(sbi->s_domain);
	cleanup_srcu_struct(&sbi->s_writeout);
	if (sbi->s_super)
		put_page(sbi->s_super);
	kfree(sbi);
}

static void lanefs_put_super(struct super_block *sb)
{
	struct lanefs_sb *sbi = LANEFS_SB(sb);

	lanefs_span_stop(sbi);
	flush_workqueue(sbi->s_io_done);
	lanefs_delalloc_check(sbi);
	lanefs_set_read_only(sbi);
	lanefs_shrinker_stop(&sbi->s_groups_shrinker);
	lanefs_shrinker_stop(&sbi->s_shrinker);
	lanefs_free_sb(sbi);
	sb->s_fs_info = NULL;
}

static int lanefs_sync_fs(struct super_block *sb, int wait)
{
	struct lanefs_sb *sbi = LANEFS_SB(sb);
	u32 i;
	int err;

	if (!sbi->s_started)
		return 0;
	if (READ_ONCE(sbi->s_aborted)) {
		/* A freeze ends here in which it was aborted, and which nobody thaws. */
		if (sb->s_writers.frozen != SB_FREEZE_COMPLETE)
			sb->s_flags |= SB_RDONLY;
		return -EIO;
	}
	if (!wait) {
		for (i = 0; i < sbi->s_domains; i++)
			lanefs_commit_request(sbi->s_journal[i],
					      READ_ONCE(sbi->s_journal[i]->j_next_seq) - 1, true);
		return 0;
	}
	lanefs_writeout_wait_all(sbi);
	err = lanefs_stabilise_all(sbi);
	return err ?: blkdev_issue_flush(sb->s_bdev);
}

static int lanefs_freeze_fs(struct super_block *sb)
{
	struct lanefs_sb *sbi = LANEFS_SB(sb);
	int err = sbi->s_started ? lanefs_checkpoint_all(sbi) : 0;

	lanefs_delalloc_check(sbi);
	lanefs_discard_wait(sbi);
	if (READ_ONCE(sbi->s_aborted)) {
		sb->s_flags |= SB_RDONLY;
		return -EROFS;
	}
	return err;
}

static int lanefs_unfreeze_fs(struct super_block *sb)
{
	if (READ_ONCE(LANEFS_SB(sb)->s_aborted))
		sb->s_flags |= SB_RDONLY;
	return 0;
}

static int lanefs_statfs(struct dentry *dentry, struct kstatfs *stat)
{
	struct super_block *sb = dentry->d_sb;
	struct lanefs_sb *sbi = LANEFS_SB(sb);
	s64 free = 0, usable = 0, inodes = 0;
	u64 blocks = 0;
	int err;
	u32 i;

	err = lanefs_count_wait(sbi);
	if (err)
		return err;
	for (i = 0; i < sbi->s_domains; i++) {
		struct lanefs_domain *domain = sbi->s_domain[i];
		s64 for_data;

		blocks += domain->d_layout.end - domain->d_layout.data;
		free += lanefs_space_count(domain, &for_data);
		usable += for_data;
		inodes += percpu_counter_sum_positive(&domain->d_inodes_free);
	}
	stat->f_type = LANEFS_SUPER_MAGIC;
	stat->f_bsize = LANEFS_BLOCK_SIZE;
	stat->f_blocks = blocks;
	stat->f_bfree = free;
	stat->f_bavail = usable;
	stat->f_files = sbi->s_domains * (sbi->s_domain_inodes - LANEFS_FIRST_INDEX);
	stat->f_ffree = inodes;
	stat->f_namelen = LANEFS_NAME_MAX;
	stat->f_fsid = uuid_to_fsid(sbi->s_uuid);
	return 0;
}

/* The device has been removed. */
static __maybe_unused void lanefs_removed(struct super_block *sb)
{
	lanefs_shutdown(LANEFS_SB(sb));
}

static const struct super_operations lanefs_sops = {
	.alloc_inode = lanefs_alloc_inode,
	.free_inode = lanefs_free_inode,
	.dirty_inode = lanefs_dirty_inode,
	.evict_inode = lanefs_evict_inode,
	.put_super = lanefs_put_super,
	.sync_fs = lanefs_sync_fs,
	.freeze_fs = lanefs_freeze_fs,
	.unfreeze_fs = lanefs_unfreeze_fs,
	.statfs = lanefs_statfs,
	LANEFS_SUPER_REMOVED
	.show_options = lanefs_show_options,
};

/* What is there of a domain's blocks and inodes, not counted yet, and its collectors. */
static int lanefs_domain_start(struct lanefs_domain *domain)
{
	int err = lanefs_groups_start(domain);

	if (!err)
		err = lanefs_ibitmaps_start(domain);
	return err ?: lanefs_gc_start(domain);
}

/* Counts some of a domain: 1: there is more; 0: that was all; or an error. */
static int lanefs_domain_count(struct lanefs_domain *domain)
{
	int blocks = lanefs_groups_count(domain);
	int inodes = blocks < 0 ? 0 : lanefs_ibitmaps_count(domain);

	return min(blocks, inodes) < 0 ? min(blocks, inodes) : blocks || inodes;
}

static int lanefs_mount_domains(struct lanefs_sb *sbi, struct fs_context *fc)
{
	struct super_block *sb = sbi->s_vfs;
	u32 state, domains, i;
	int err;

	sbi->s_super = alloc_page(GFP_KERNEL);
	sbi->s_io_done = alloc_workqueue("lanefs-io/%s", WQ_MEM_RECLAIM | LANEFS_WQ_PERCPU, 0,
					 sb->s_id);
	if (!sbi->s_super || !sbi->s_io_done)
		return -ENOMEM;
	err = lanefs_read_super(sbi, fc);
	if (err)
		return err;
	err = lanefs_check_features(sb, &sbi->s_options, fc);
	if (err)
		return err;
	/*
	 * What was moved after a hibernation's image was made would not be known to it. The ends of
	 * I/O on the same CPU do not wait for a collector.
	 */
	if (lanefs_is_log(sb))
		sbi->s_collect = alloc_workqueue("lanefs-gc/%s",
						 WQ_FREEZABLE | WQ_CPU_INTENSIVE | LANEFS_WQ_PERCPU,
						 0, sb->s_id);
	if (lanefs_is_log(sb) && !sbi->s_collect)
		return -ENOMEM;
	domains = le32_to_cpu(lanefs_super_of(sbi)->sb_domains);
	sbi->s_domain = kvcalloc(domains, sizeof(*sbi->s_domain), GFP_KERNEL);
	sbi->s_journal = kvcalloc(domains, sizeof(*sbi->s_journal), GFP_KERNEL);
	if (!sbi->s_domain || !sbi->s_journal)
		return -ENOMEM;
	sbi->s_domains = domains;
	for (i = 0; i < domains && !err; i++)
		err = lanefs_domain_new(sbi, i);
	if (err)
		return err;

	state = le32_to_cpu(lanefs_super_of(sbi)->sb_state);
	if (state & LANEFS_STATE_ERROR) {
		pr_warn("lanefs (%s): an earlier mount or check found damage; run fsck.lanefs\n", sb->s_id);
		sbi->s_damaged = true;
	}
	if ((state & ~LANEFS_STATE_ERROR) != LANEFS_STATE_CLEAN && sbi->s_options.norecovery) {
		pr_warn("lanefs (%s): norecovery: journals not replayed; files may be missing or inconsistent\n",
			sb->s_id);
	} else if ((state & ~LANEFS_STATE_ERROR) != LANEFS_STATE_CLEAN) {
		if (bdev_read_only(sb->s_bdev)) {
			/* Only to the log of the kernel: without our words mount(8) says that of a protected device. */
			pr_err("lanefs (%s): recovery is needed, but the device is read-only; mount -o ro,norecovery skips it\n",
			       sb->s_id);
			return -EROFS;
		}
		err = lanefs_recover(sbi);
		if (!err && sb_rdonly(sb))
			err = lanefs_new_epoch(sbi, LANEFS_STATE_CLEAN);
	}
	return err ?: lanefs_each_domain(sbi, lanefs_domain_start);
}

static int lanefs_fill_super(struct super_block *sb, struct fs_context *fc)
{
	struct lanefs_sb *sbi = sb->s_fs_info;
	struct inode *root;
	int err;

	err = init_srcu_struct(&sbi->s_writeout);
	if (err) {
		kfree(sbi);
		sb->s_fs_info = NULL;
		return err;
	}
	sbi->s_vfs = sb;
	sbi->s_journal_ops = &lanefs_space_ops;
	sbi->s_set_ops = lanefs_set_ops;
	sbi->s_gc_low = min(READ_ONCE(lanefs_gc_low), 100U);
	mutex_init(&sbi->s_super_mutex);
	init_waitqueue_head(&sbi->s_wait_flushed);
	mutex_init(&sbi->s_space_mutex);
	lockdep_init_map(&sbi->s_handle_map, "lanefs_handle", &lanefs_handle_key, 0);
	if (!sb_set_blocksize(sb, LANEFS_BLOCK_SIZE)) {
		errorf(fc, "the device's logical blocks are larger than %u bytes", LANEFS_BLOCK_SIZE);
		err = -EINVAL;
		goto free;
	}
	err = lanefs_check_options(sb, &sbi->s_options, NULL, fc);
	if (err)
		goto free;
	sb->s_magic = LANEFS_SUPER_MAGIC;
	sb->s_op = &lanefs_sops;
	sb->s_xattr = lanefs_xattr_handlers;
	sb->s_flags |= SB_POSIXACL;
	sb->s_export_op = &lanefs_export_ops;
	sb->s_maxbytes = min_t(u64, MAX_LFS_FILESIZE, LANEFS_MAX_FILE_BLOCKS << LANEFS_BLOCK_SHIFT);
	sb->s_time_gran = 1;
	/* Writeback is done, and counted, for the cgroup that dirtied. */
	sb->s_iflags |= SB_I_CGROUPWB;
	/* The VFS gives EMLINK; no operation here looks at the count. */
	sb->s_max_links = LANEFS_LINK_MAX;
	err = lanefs_mount_domains(sbi, fc);
	if (!err)
		err = lanefs_sysfs_start(sbi);
	if (err)
		goto free;
	err = lanefs_shrinker_start(&sbi->s_shrinker, lanefs_cache_count, lanefs_cache_scan, sbi,
				    sb->s_id);
	if (err)
		goto free;
	err = lanefs_shrinker_start(&sbi->s_groups_shrinker, lanefs_groups_cached,
				    lanefs_groups_scan, sbi, sb->s_id);
	if (err)
		goto stop_shrinker;
	if (!sb_rdonly(sb))
		err = lanefs_set_writable(sbi);
	if (!err)
		err = lanefs_count_start(sbi, lanefs_domain_count);
	if (!err)
		err = lanefs_span_start(sbi);
	if (err)
		goto stop;
	root = lanefs_iget(sb, LANEFS_ROOT_INO);
	if (!IS_ERR(root) && (!S_ISDIR(root->i_mode) || !root->i_nlink)) {
		/* Before it leaves memory: without links it would be deleted. */
		lanefs_error(sbi, "the root inode is not a directory, or has no links");
		iput(root);
		root = ERR_PTR(-EUCLEAN);
	}
	err = PTR_ERR_OR_ZERO(root);
	if (err)
		goto stop;
	sb->s_root = d_make_root(root);
	err = -ENOMEM;
	if (!sb->s_root)
		goto stop;
	if (!sb_rdonly(sb)) {
		err = lanefs_orphans_process(sbi);
		if (err) {
			dput(sb->s_root);
			sb->s_root = NULL;
			goto stop;
		}
	}
	return 0;
stop:
	lanefs_gc_allow(sbi, false);
	lanefs_span_stop(sbi);
	lanefs_icache_list(sbi);
	evict_inodes(sb);
	lanefs_set_read_only(sbi);
	lanefs_shrinker_stop(&sbi->s_groups_shrinker);
stop_shrinker:
	lanefs_shrinker_stop(&sbi->s_shrinker);
free:
	lanefs_free_sb(sbi);
	sb->s_fs_info = NULL;
	return err;
}

static int lanefs_get_tree(struct fs_context *fc)
{
	return get_tree_bdev(fc, lanefs_fill_super);
}

static int lanefs_reconfigure(struct fs_context *fc)
{
	struct super_block *sb = fc->root->d_sb;
	struct lanefs_sb *sbi = LANEFS_SB(sb), *asked = fc->s_fs_info;
	bool read_only = lanefs_remount_read_only(sb, fc);
	u32 i;
	int err;

	err = lanefs_check_options(sb, &asked->s_options, &sbi->s_options, fc);
	if (err)
		return err;
	/* A collector may hold one that has no name any more. */
	if (read_only)
		lanefs_gc_allow(sbi, false);
	/* They could not be deleted. An emergency remount (sysrq) takes that. */
	if (read_only && !(fc->sb_flags & SB_FORCE) && lanefs_any_unlinked(sbi)) {
		lanefs_gc_allow(sbi, !sb_rdonly(sb));
		return -EBUSY;
	}
	err = sync_filesystem(sb);
	if (err && !(fc->sb_flags & SB_FORCE)) {
		lanefs_gc_allow(sbi, !sb_rdonly(sb));
		return err;
	}
	if (READ_ONCE(sbi->s_aborted) && !read_only) {
		errorf(fc, "aborted, after an error or by a shutdown: unmount, run fsck.lanefs, mount");
		return -EROFS;
	}
	if (!read_only && (sbi->s_ro_compat & ~LANEFS_RO_COMPAT_KNOWN))
		return invalf(fc, "unknown features: only a read-only mount is possible");
	if (read_only && !sb_rdonly(sb)) {
		err = lanefs_set_read_only(sbi);
		if (err)
			return err;
	} else if (!read_only && sb_rdonly(sb)) {
		err = lanefs_set_writable(sbi);
		if (err)
			return err;
		sb->s_flags &= ~SB_RDONLY;
		err = lanefs_orphans_process(sbi);
		if (err) {
			sb->s_flags |= SB_RDONLY;
			lanefs_set_read_only(sbi);
			return err;
		}
	}
	lanefs_take_options(&sbi->s_options, &asked->s_options);
	/* With journal=serial the threads take over the work of waiting tasks. */
	smp_mb();
	for (i = 0; i < sbi->s_domains; i++)
		wake_up(&sbi->s_journal[i]->j_wait_commit_work);
	return 0;
}

static void lanefs_free_context(struct fs_context *fc)
{
	kfree(fc->s_fs_info);
}

static const struct fs_context_operations lanefs_context_ops = {
	.parse_param = lanefs_parse_param,
	.get_tree = lanefs_get_tree,
	.reconfigure = lanefs_reconfigure,
	.free = lanefs_free_context,
};

static int lanefs_init_context(struct fs_context *fc)
{
	struct lanefs_sb *sbi = kzalloc(sizeof(*sbi), GFP_KERNEL);

	if (!sbi)
		return -ENOMEM;
	if (fc->purpose == FS_CONTEXT_FOR_RECONFIGURE)
		sbi->s_options = LANEFS_SB(fc->root->d_sb)->s_options;
	fc->s_fs_info = sbi;
	fc->ops = &lanefs_context_ops;
	return 0;
}

static void lanefs_kill_super(struct super_block *sb)
{
	/* Where the mount failed there are none. */
	if (sb->s_root) {
		lanefs_gc_allow(LANEFS_SB(sb), false);
		lanefs_icache_list(LANEFS_SB(sb));
	}
	kill_block_super(sb);
	/* Only where the device could not be opened: then nothing was set up in it. */
	kfree(sb->s_fs_info);
}

static struct file_system_type lanefs_type = {
	.owner = THIS_MODULE,
	.name = "lanefs",
	.init_fs_context = lanefs_init_context,
	.parameters = lanefs_parameters,
	.kill_sb = lanefs_kill_super,
	.fs_flags = FS_REQUIRES_DEV | FS_ALLOW_IDMAP | FS_MGTIME,
};

static int __init lanefs_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct lanefs_super_block) != LANEFS_BLOCK_SIZE);
	BUILD_BUG_ON(sizeof(struct lanefs_domain_block) != LANEFS_BLOCK_SIZE);
	BUILD_BUG_ON(sizeof(struct lanefs_commit_block) != LANEFS_BLOCK_SIZE);
	BUILD_BUG_ON(sizeof(struct lanefs_dinode) != LANEFS_INODE_SIZE);
	BUILD_BUG_ON(PAGE_SIZE != LANEFS_BLOCK_SIZE);
	/* Indices of the page cache, and words of 64 bits that are read at once (slots, sequences). */
	BUILD_BUG_ON(BITS_PER_LONG != 64);
	lanefs_domain_cache = kmem_cache_create("lanefs_domain", sizeof(struct lanefs_domain), 0,
						SLAB_HWCACHE_ALIGN, NULL);
	if (!lanefs_domain_cache)
		return -ENOMEM;
	err = lanefs_journal_cache_init();
	if (err)
		goto err_domain;
	err = lanefs_inode_cache_init();
	if (err)
		goto err_journal;
	err = lanefs_readpath_init();
	if (err)
		goto err_inode;
	err = lanefs_sysfs_init();
	if (err)
		goto err_readpath;
	err = register_filesystem(&lanefs_type);
	if (err)
		goto err_register;
	return 0;

err_register:
	lanefs_sysfs_exit();
err_readpath:
	lanefs_readpath_exit();
err_inode:
	lanefs_inode_cache_exit();
err_journal:
	lanefs_journal_cache_exit();
err_domain:
	kmem_cache_destroy(lanefs_domain_cache);
	return err;
}

static void __exit lanefs_exit(void)
{
	unregister_filesystem(&lanefs_type);
	lanefs_sysfs_exit();
	lanefs_readpath_exit();
	lanefs_inode_cache_exit();
	lanefs_journal_cache_exit();
	kmem_cache_destroy(lanefs_domain_cache);
}

module_init(lanefs_init);
module_exit(lanefs_exit);
MODULE_DESCRIPTION("lanefs: a file system of independent domains (fscale's system under test)");
MODULE_LICENSE("GPL");
MODULE_ALIAS_FS("lanefs");
