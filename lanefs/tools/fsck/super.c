// SPDX-License-Identifier: GPL-2.0-only
/* Block 0, or the best of its copies. */
#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "core/crc.h"
#include "tools/common/die.h"

#define FIXED_FROM offsetof(struct lanefs_super_block, sb_version)
#define STATE_FROM offsetof(struct lanefs_super_block, sb_state)
#define STATE_TO offsetof(struct lanefs_super_block, sb_hash_seed)
#define LABEL_FROM offsetof(struct lanefs_super_block, sb_label)
#define LABEL_TO offsetof(struct lanefs_super_block, sb_created)

static bool intact(const struct lanefs_super_block *super, u64 block)
{
	struct lanefs_super_block copy = *super;

	copy.sb_header.lh_crc = 0;
	return le32_to_cpu(super->sb_header.lh_magic) == LANEFS_MAGIC_SUPER &&
	       le64_to_cpu(super->sb_header.lh_block) == block &&
	       le32_to_cpu(super->sb_header.lh_crc) == lanefs_crc32c(~0u, &copy, sizeof(copy));
}

/* Whether all that never changes is the same; state and label are newer in block 0 after a crash. */
static bool same_file_system(const struct lanefs_super_block *a, const struct lanefs_super_block *b)
{
	const u8 *x = (const u8 *)a, *y = (const u8 *)b;

	return !memcmp(a->sb_header.lh_uuid, b->sb_header.lh_uuid, 16) &&
	       !memcmp(x + FIXED_FROM, y + FIXED_FROM, STATE_FROM - FIXED_FROM) &&
	       !memcmp(x + STATE_TO, y + STATE_TO, LABEL_FROM - STATE_TO) &&
	       !memcmp(x + LABEL_TO, y + LABEL_TO, sizeof(*a) - LABEL_TO);
}

static void lay_out(struct lanefs_layout *layout, u32 domain,
		    const struct lanefs_super_block *super)
{
	lanefs_domain_layout(layout, domain, le64_to_cpu(super->sb_domain_start),
			     le64_to_cpu(super->sb_domain_blocks),
			     le64_to_cpu(super->sb_domain_inodes),
			     le32_to_cpu(super->sb_journal_blocks),
			     le64_to_cpu(super->sb_incompat));
}

/* Why the module could not use it; NULL: it could. */
static const char *nonsense(const struct lanefs_super_block *super, u64 device_blocks)
{
	u64 blocks = le64_to_cpu(super->sb_blocks), start = le64_to_cpu(super->sb_domain_start);
	u64 domain_blocks = le64_to_cpu(super->sb_domain_blocks);
	u64 inodes = le64_to_cpu(super->sb_domain_inodes);
	u32 domains = le32_to_cpu(super->sb_domains), span = le32_to_cpu(super->sb_span_dirs);
	u32 journal = le32_to_cpu(super->sb_journal_blocks);
	struct lanefs_layout layout;

	if (le32_to_cpu(super->sb_version) != LANEFS_VERSION)
		return "another version of the format";
	if (le32_to_cpu(super->sb_block_shift) != LANEFS_BLOCK_SHIFT)
		return "a wrong block size";
	if (le64_to_cpu(super->sb_incompat) & ~LANEFS_INCOMPAT_KNOWN ||
	    le64_to_cpu(super->sb_ro_compat) & ~LANEFS_RO_COMPAT_KNOWN)
		return "features that this program does not know";
	if (blocks > device_blocks)
		return "more blocks than the device has";
	if (!domains || domains > LANEFS_MAX_DOMAINS || !start || start >= blocks ||
	    domain_blocks > (blocks - start) / domains)
		return "domains that do not fit";
	if (inodes <= LANEFS_FIRST_INDEX || inodes > domain_blocks * LANEFS_INODES_PER_BLOCK ||
	    inodes >> LANEFS_DOMAIN_SHIFT)
		return "a wrong number of inodes";
	if (journal < LANEFS_MIN_JOURNAL || journal > domain_blocks)
		return "a wrong size of the journal";
	lay_out(&layout, 0, super);
	if (layout.data >= layout.end)
		return "domains without room for data";
	if (!span || span > LANEFS_MAX_SPAN_DIRS || span & (span - 1))
		return "a wrong number of span directories";
	if (!super->sb_epoch || le64_to_cpu(super->sb_epoch) >= COUNTER_END)
		return "a wrong epoch";
	return NULL;
}

static bool in_place(struct check *c, u64 block, u32 magic, const struct lanefs_super_block *super)
{
	struct lanefs_super_block found;

	read_block(c, block, &found);
	return le32_to_cpu(found.sb_header.lh_magic) == magic &&
	       le64_to_cpu(found.sb_header.lh_block) == block &&
	       !memcmp(found.sb_header.lh_uuid, super->sb_header.lh_uuid, 16);
}

struct candidate {
	struct lanefs_super_block super;
	u64 block;
	u32 copies;	/* that say the same, block 0 not counted */
	u32 support;	/* per mille of what it says that is so on the device; 0: no candidate */
};

static void count_support(struct check *c, struct candidate *candidate)
{
	const struct lanefs_super_block *super = &candidate->super;
	bool log = super->sb_incompat & cpu_to_le64(LANEFS_INCOMPAT_LOG);
	u32 domains = le32_to_cpu(super->sb_domains), found;
	struct lanefs_super_block block;
	struct lanefs_layout layout;

	read_block(c, 0, &block);
	found = intact(&block, 0) && same_file_system(&block, super);
	candidate->copies = 0;
	for (u32 d = 0; d < domains; d++) {
		lay_out(&layout, d, super);
		read_block(c, layout.base, &block);
		candidate->copies += intact(&block, layout.base) &&
				     same_file_system(&block, super);
		found += in_place(c, layout.base + 1, LANEFS_MAGIC_DOMAIN, super);
		found += in_place(c, layout.ibitmap, LANEFS_MAGIC_IBITMAP, super);
		/* Where a log has owners, others have data: of a domain that is there. */
		if (in_place(c, layout.bbitmap, LANEFS_MAGIC_BBITMAP, super))
			found += 1 + (in_place(c, layout.owners, LANEFS_MAGIC_OWNERS, super) == log);
	}
	candidate->support = (found + candidate->copies) * 1000 / (1 + 5 * domains);
}

/* Takes the superblock in @block if it is better than the best so far. */
static void consider(struct check *c, struct candidate *best, u64 block)
{
	struct candidate new = { .block = block };

	read_block(c, block, &new.super);
	if (!intact(&new.super, block) || nonsense(&new.super, c->image.blocks) ||
	    (best->support && same_file_system(&new.super, &best->super)))
		return;
	count_support(c, &new);
	if (new.support > best->support)
		*best = new;
}

static void find_best(struct check *c, struct candidate *best)
{
	*best = (struct candidate){ 0 };
	consider(c, best, 0);
	if (best->support) {
		struct lanefs_super_block first = best->super;

		for (u32 d = 0; d < le32_to_cpu(first.sb_domains); d++)
			consider(c, best, le64_to_cpu(first.sb_domain_start) +
					  d * le64_to_cpu(first.sb_domain_blocks));
		if (best->copies)
			return;
	}
	/* Data that looks like a copy lies at another place than it says. */
	for (u64 block = 1; block < c->image.blocks; block++)
		consider(c, best, block);
}

/* The copies are written after block 0, so without it the truth is the newest trace there is. */
static void adopt_newest_epoch(struct check *c)
{
	u64 base = le64_to_cpu(c->super.sb_domain_start), newest = le64_to_cpu(c->super.sb_epoch);

	for (u32 d = 0; d < le32_to_cpu(c->super.sb_domains); d++) {
		struct lanefs_super_block block;

		read_block(c, base, &block);
		if (intact(&block, base) && same_file_system(&block, &c->super) &&
		    le64_to_cpu(block.sb_epoch) >= newest) {
			newest = le64_to_cpu(block.sb_epoch);
			c->super.sb_state = block.sb_state;
		}
		read_block(c, base + 1, &block);
		if (le32_to_cpu(block.sb_header.lh_magic) == LANEFS_MAGIC_DOMAIN &&
		    !memcmp(block.sb_header.lh_uuid, c->super.sb_header.lh_uuid, 16) &&
		    le64_to_cpu(block.sb_header.lh_epoch) > newest &&
		    le64_to_cpu(block.sb_header.lh_epoch) < newest + 16)
			newest = le64_to_cpu(block.sb_header.lh_epoch);
		base += le64_to_cpu(c->super.sb_domain_blocks);
	}
	c->super.sb_epoch = cpu_to_le64(newest);
}

static void open_domains(struct check *c)
{
	c->epoch = le64_to_cpu(c->super.sb_epoch);
	c->domains = le32_to_cpu(c->super.sb_domains);
	c->domain_inodes = le64_to_cpu(c->super.sb_domain_inodes);
	c->domain = allocate(c->domains, sizeof(*c->domain));
	for (u32 d = 0; d < c->domains; d++) {
		struct domain *domain = &c->domain[d];

		lay_out(&domain->layout, d, &c->super);
		domain->search = domain->layout.data - domain->layout.base;
		domain->records = allocate(c->domain_inodes, sizeof(*domain->records));
		domain->used = allocate(domain->layout.bbitmap_blocks, LANEFS_BODY_SIZE);
		domain->inode_bits = allocate(domain->layout.ibitmap_blocks, LANEFS_BODY_SIZE);
		domain->block_bits = allocate(domain->layout.bbitmap_blocks, LANEFS_BODY_SIZE);
		domain->orphan_bits = allocate(domain->layout.ibitmap_blocks, LANEFS_BODY_SIZE);
		domain->lost_owners = allocate(lanefs_blocks_for(domain->layout.owners_blocks,
								 8ull), 1);
	}
}

bool load_super(struct check *c)
{
	struct candidate best;
	const char *problem;

	if (!c->image.blocks) {
		cannot_repair(&c->report, "the device has no blocks");
		return false;
	}
	read_block(c, 0, &c->super);
	problem = nonsense(&c->super, c->image.blocks);
	if (intact(&c->super, 0) && le32_to_cpu(c->super.sb_version) > LANEFS_VERSION) {
		cannot_repair(&c->report, "superblock: it has %s", problem);
		return false;
	}
	find_best(c, &best);
	if (!best.support) {
		cannot_repair(&c->report, "superblock: %s%s, and no intact copy exists",
			    intact(&c->super, 0) ? "it has " : "",
			    intact(&c->super, 0) ? problem : "it is damaged");
		return false;
	}
	if (best.block) {
		can_repair(&c->report, "superblock: %s; the copy in block %llu is used",
			 intact(&c->super, 0) ? "it differs from its copies" : "it is damaged",
			 best.block);
		c->super = best.super;
		adopt_newest_epoch(c);
	}
	open_domains(c);
	return true;
}

static void commit(struct check *c)
{
	int error = image_commit(&c->image);

	if (error)
		die(FSCK_FAILED, "%s: writing: %s", c->image.device.path, strerror(-error));
}

void write_super(struct check *c, u32 state, u64 epoch)
{
	struct lanefs_super_block block = c->super;

	block.sb_state = c->super.sb_state = cpu_to_le32(state);
	block.sb_epoch = c->super.sb_epoch = cpu_to_le64(epoch);
	c->epoch = epoch;
	commit(c);
	set_header(c, &block, LANEFS_MAGIC_SUPER, 0, 0);
	write_super_block(c, 0, &block);
	commit(c);
	for (u32 d = 0; d < c->domains; d++) {
		set_header(c, &block, LANEFS_MAGIC_SUPER, c->domain[d].layout.base, 0);
		write_super_block(c, c->domain[d].layout.base, &block);
	}
	commit(c);
}

void mark_damaged(struct check *c)
{
	struct lanefs_super_block block;

	if (le32_to_cpu(c->super.sb_state) & LANEFS_STATE_ERROR)
		return;
	c->super.sb_state |= cpu_to_le32(LANEFS_STATE_ERROR);
	block = c->super;
	set_header(c, &block, LANEFS_MAGIC_SUPER, 0, 0);
	write_super_block_now(c, 0, &block);
}

void write_empty_journals(struct check *c)
{
	for (u32 d = 0; d < c->domains; d++) {
		u64 base = c->domain[d].layout.base;
		struct lanefs_domain_block block = {
			.db_domain = cpu_to_le32(d),
			.db_base = cpu_to_le64(base),
			.db_tail_seq = cpu_to_le64(1),
		};

		set_header(c, &block, LANEFS_MAGIC_DOMAIN, base + 1, d);
		write_super_block(c, base + 1, &block);
	}
	commit(c);
}

void check_super_copies(struct check *c)
{
	u32 state = le32_to_cpu(c->super.sb_state);
	struct lanefs_super_block copy;

	if ((state & ~LANEFS_STATE_ERROR) != LANEFS_STATE_CLEAN &&
	    (state & ~LANEFS_STATE_ERROR) != LANEFS_STATE_MOUNTED)
		can_repair(&c->report, "superblock: state %#x is unknown", state);
	if (state & LANEFS_STATE_ERROR)
		can_repair(&c->report, "superblock: an earlier mount or check found damage");
	for (u32 d = 0; d < c->domains; d++) {
		u64 block = c->domain[d].layout.base;

		read_block(c, block, &copy);
		if (!intact(&copy, block))
			can_repair(&c->report, "domain %u: its copy of the superblock is damaged", d);
		else if (!same_file_system(&copy, &c->super))
			can_repair(&c->report, "domain %u: its copy of the superblock differs", d);
	}
}
