// SPDX-License-Identifier: GPL-2.0-only
#include <blkid/blkid.h>

#include "core/block.h"
#include "signature.h"
#include "tools/common/die.h"

static blkid_probe new_probe(const struct device *device)
{
	blkid_probe probe = blkid_new_probe();

	if (!probe || blkid_probe_set_device(probe, device->fd, 0, 0) ||
	    blkid_probe_enable_superblocks(probe, 1) ||
	    blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_MAGIC |
						     BLKID_SUBLKS_BADCSUM) ||
	    blkid_probe_enable_partitions(probe, 1) ||
	    blkid_probe_set_partitions_flags(probe, BLKID_PARTS_MAGIC))
		die(1, "%s: libblkid cannot probe it for file systems", device->path);
	return probe;
}

static bool read_lanefs(const struct device *device, struct lanefs_super_block *super)
{
	return !device_read(device, super, LANEFS_BLOCK_SIZE, 0) &&
	       lanefs_block_good(super, LANEFS_MAGIC_SUPER, 0, super->sb_header.lh_uuid);
}

/* fsck.lanefs could take copies of an old superblock for those of the new one. */
static void wipe_old_copies(const struct device *device)
{
	struct lanefs_super_block super;
	const u8 zeros[LANEFS_BLOCK_SIZE] = { 0 };
	u64 block;

	if (!read_lanefs(device, &super))
		return;
	block = le64_to_cpu(super.sb_domain_start);
	for (u32 d = 0; d < le32_to_cpu(super.sb_domains) && d < LANEFS_MAX_DOMAINS; d++) {
		if (block >= device->size / LANEFS_BLOCK_SIZE)
			return;
		if (device_write(device, zeros, sizeof(zeros), block * LANEFS_BLOCK_SIZE))
			die(1, "%s: cannot overwrite an old superblock", device->path);
		block += le64_to_cpu(super.sb_domain_blocks);
	}
}

void refuse_known_content(const struct device *device)
{
	blkid_probe probe = new_probe(device);
	struct lanefs_super_block super;
	const char *kind = NULL;
	int found = blkid_do_safeprobe(probe);

	if (found == -1)
		die(1, "%s: libblkid cannot read it", device->path);
	if (read_lanefs(device, &super))
		kind = "lanefs";
	else if (found == -2)
		kind = "several file systems";
	else if (!found && blkid_probe_lookup_value(probe, "TYPE", &kind, NULL) &&
		 blkid_probe_lookup_value(probe, "PTTYPE", &kind, NULL))
		kind = "data";
	if (kind)
		die(1, "%s already contains %s; -f overwrites it", device->path, kind);
	blkid_free_probe(probe);
}

void wipe_signatures(const struct device *device)
{
	blkid_probe probe = new_probe(device);

	while (!blkid_do_probe(probe))
		if (blkid_do_wipe(probe, 0))
			die(1, "%s: cannot wipe the signatures of an old file system", device->path);
	blkid_free_probe(probe);
	wipe_old_copies(device);
}
