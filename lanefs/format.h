/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * lanefs on disk, version 1. Shared by the kernel module and the tools.
 *
 * All numbers are little-endian. A block is 4096 bytes; block numbers count from the start of the
 * device. The device is cut into equal domains; what does not divide is left unused at the end.
 *
 *   block 0        sb_domain_start             + sb_domain_blocks
 *   +------------+----------+-----------------+-----------------+-- - --+-----------------+------+
 *   | superblock | reserved |    domain 0     |    domain 1     |  ...  |   domain D-1    |unused|
 *   +------------+----------+-----------------+-----------------+-- - --+-----------------+------+
 *                          /                   \
 *    +--------+--------+---------+--------+--------+--------+---------------+------------------+
 *    | super- | domain | journal | inode  | orphan | block  | inode table   | data, directory  |
 *    | block  | super- |         | bitmap | bitmap | bitmap | 15 inodes     | and tree blocks  |
 *    | (copy) | block  |         |        |        |        | a block       |                  |
 *    +--------+--------+---------+--------+--------+--------+---------------+------------------+
 *    base     base+1   base+2    (lanefs_domain_layout() computes the rest; with
 *                                 LANEFS_INCOMPAT_LOG the owners lie behind the inode table)
 *
 * Every metadata block begins with struct lanefs_header: kind, CRC32C of the whole block, its own
 * block number, the file system's uuid, its owner, and the epoch and transaction that wrote it.
 *
 * A bitmap block carries LANEFS_BITMAP_BITS bits. The blocks that one block of the block bitmap
 * describes are an allocation group. Bit n of the block bitmap is block base + n of the domain
 * (set: in use; the domain's own metadata is set by mkfs). Bit n of the inode bitmap is the inode
 * of index n (set: in use); bits past the end of the domain are set. Bit n of the orphan bitmap is
 * set while inode n waits to be deleted (its link count is 0), to be cut to its size, or for the end
 * of a shift.
 *
 * An inode number is domain << 40 | index. Inode n lies in block n / 15 of its domain's inode
 * table, at byte 256 * (1 + n % 15). A block of the table has meaning only while one of its 15
 * inodes is in use; whoever takes the first of them writes the whole block anew, so mkfs need not
 * write the table.
 *
 * Trees. The last 128 bytes of an inode are the root of a B+ tree. Directories and extent maps
 * share the nodes: struct lanefs_index {key, block}, sorted by key. Child i covers keys from
 * index[i].key (child 0: from minus infinity) up to index[i + 1].key.
 *
 *   inode: di_level 0        regular file: up to 8 extents here. Directory: empty.
 *                            Symlink: the target, up to 127 bytes, if di_size <= 127.
 *   inode: di_level n > 0    up to 8 lanefs_index to blocks of level n - 1
 *   node block, level >= 1   up to 252 lanefs_index               (LANEFS_MAGIC_NODE)
 *   leaf block, level 0      up to 252 extents                    (LANEFS_MAGIC_EXTENTS)
 *                            or directory entries                 (LANEFS_MAGIC_DIRENTS)
 *   symlink, di_level 1      one lanefs_index, key 0, to a block  (LANEFS_MAGIC_SYMLINK); what of
 *                            the target does not fit there follows the lanefs_index
 *
 * Extended attributes. di_xattr is a block of the inode's domain (LANEFS_MAGIC_XATTR) with all of
 * them, or 0 if there are none: lh_count entries, packed from byte 64 to byte lh_used, each struct
 * lanefs_xattr, the name without its prefix, the value, and zeros up to a multiple of 4 bytes. They
 * are sorted by namespace and then by name as bytes (a name before the longer ones that begin with
 * it), and no two have the same name. What is behind lh_used is zero.
 *
 *   byte 64                                                                    lh_used      4096
 *   +-----------+----------+----------+------+-------+---------+---------+- - -+-------------+
 *   | value_len | name_len |  space   | name | value | zeros   |  next   |     |    zeros    |
 *   |  2 bytes  |  1 byte  |  1 byte  |      |       | to 4    |         |     |             |
 *   +-----------+----------+----------+------+-------+---------+---------+- - -+-------------+
 *
 * ACLs are attributes without a name, in namespaces of their own; the value is what getxattr(2)
 * gives of them (ids as on disk elsewhere): __le32 LANEFS_ACL_VERSION, then struct lanefs_acl_entry
 * sorted by their tags. One of each kind but those of named users and groups, of which there may be
 * any number; the mask's may lack where there are none of these. A directory may have both ACLs, a
 * symlink none, others that of access only.
 *
 * A range of blocks is taken out of a file (collapse), or put into it (insert), by a shift of all
 * extents behind it, in as many transactions as it takes. Until the last one di_shift_by is the number
 * of blocks and di_shift_at where the hole is between the extents that have moved and those that have
 * not, the inode is marked as an orphan, and di_size is the larger of both sizes. Whoever finds it so
 * takes the hole out: what lies in it is freed, what lies behind it moves down, and the size becomes as
 * much smaller. That ends a collapse, and undoes an insertion. Owners (see below) may be behind.
 *
 * A file may have unwritten extents past its end (preallocation). No node or leaf below the root is
 * empty. All metadata blocks of an inode lie in its domain;
 * data extents may lie in any domain, but never in two.
 *
 * Directories. An entry's key is hash << 7 | n: 56 bits of SipHash-2-4 of the name, keyed by
 * sb_hash_seed, and the smallest n that no other entry of that hash in the directory has. It is
 * unique in the directory, never changes, and (plus 2) is the readdir cookie. Entries lie packed
 * and sorted by key in a leaf: from byte 64 to byte lh_used, lh_count of them. "." and ".." are
 * not stored; di_parent is "..".
 *
 * Span directories (LANEFS_RO_COMPAT_SPAN): the other half of the bidirectional index of SpanFS
 * (ATC'15, 3.3). A name in domain A of an inode in domain B is A's shadow entry; B keeps a remote
 * entry, in one of its span directories (inodes LANEFS_SPAN_INDEX and on, not reachable by name),
 * for as long as the name exists. A remote entry's de_ino is the inode in B; its "name" is the
 * inode number of the directory in A (8 bytes) and then the name. It lies in the span directory
 * hash % sb_span_dirs, by the hash in its key. Names in the inode's own domain have no remote entry.
 *
 * The log (LANEFS_INCOMPAT_LOG, as in ScaleLFS, FAST'25). Data that was written is never written
 * over: it goes to another block, and the transaction that maps that one frees the old one. A domain
 * is cut into segments of LANEFS_SEGMENT_BLOCKS from its base on, 63 of them to an allocation group;
 * new data is put into segments that are free, one after the other, or where there are none into
 * holes. So that live blocks can be moved out of a segment each block has an owner: block base + n has
 * entry n % LANEFS_OWNERS of block n / LANEFS_OWNERS of the domain's owners (LANEFS_MAGIC_OWNERS), the
 * inode and the logical block that an extent maps to it, written or not; it is journaled with the
 * extent. Of blocks that no extent maps the entry says nothing: whoever wants to know looks at the
 * inode's map.
 *
 * Journal. Each domain journals the metadata blocks of its own range, whole, in compound
 * transactions numbered without gaps, from db_tail_seq on in each epoch. A transaction in the journal,
 * which wraps around:
 *
 *   { descriptor: numbers of up to 504 blocks; then those blocks }*  { revoke: up to 504 }*  commit
 *
 * A copy is valid if its header is: block number as in the descriptor, and the epoch, the sequence
 * and the CRC right. A revoked block is not replayed from that or any earlier transaction.
 * Data is not journaled. Blocks get into a file as unwritten extents, and become written ones in
 * a transaction that begins after their data was written.
 *
 * Its contents end before the first transaction that is not complete. A domain's transactions are
 * written one after the other, each commit block after a flush of all before it, and the journal from
 * db_tail on is not written over. So a good commit block of this epoch with the sequence where the
 * contents end, or a later one, anywhere in the journal, says that the medium has damaged or lost what
 * was durable: then there is no recovery without a repair.
 *
 * Epochs. sb_epoch counts read-write mounts. Journal blocks of another epoch than sb_epoch are
 * void, and a domain superblock of an older one means an empty journal. So one write of block 0, after
 * recovery has replayed every domain and flushed, discards all journals at once.
 *
 * Operations that span domains. An operation joins the running transactions of all domains that it
 * changes, all before it changes anything, and ties them: each one's commit block names the others
 * in jc_needs (the highest sequence in each domain). Recovery finds the largest cut: starting at
 * the last complete transaction of each domain, it lowers a domain's end to before any transaction
 * that needs one beyond another domain's end, until nothing changes. Then it replays each domain
 * up to its end.
 *
 *   Atomic: ties are mutual, so if the cut leaves one part of an operation out, the other part's
 *   transaction needs one beyond the cut and is left out as well.
 *   Consistent: the domains' journals are sequences, so an operation's effects in a domain are left
 *   out only together with all later ones in that domain. Every invariant between two domains
 *   (a name and its inode, an extent and its bitmap) is changed by operations that join both, so
 *   it holds at every cut.
 *   Durable: fsync commits the closure: the transaction, those before it in its domain, those that
 *   these need, and so on. A transaction whose closure is on disk is called stable. It is part of
 *   every later cut, as no member of the closure needs anything outside of it.
 *   Nothing that is not stable leaves a trace outside of the journals: blocks are written in place,
 *   journal space is reclaimed, and freed blocks are used again only for stable transactions. So
 *   discarding what is beyond the cut needs no undo.
 *   Once only: the discarded transactions stay discarded. Until block 0 is written with the next
 *   epoch, recovery after another crash sees the same journals, computes the same cut and replays the
 *   same blocks; after it, all journals are void.
 *   Block 0 and the domain superblocks are not journaled. What changes in them lies within their
 *   first 512 bytes, so that a torn write of 4096 bytes leaves the old or the new state.
 */
#ifndef LANEFS_FORMAT_H
#define LANEFS_FORMAT_H

#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/math64.h>
#endif

#define LANEFS_VERSION		1
#define LANEFS_BLOCK_SHIFT	12
#define LANEFS_BLOCK_SIZE	(1 << LANEFS_BLOCK_SHIFT)

#define LANEFS_MAX_DOMAINS	256
#define LANEFS_MIN_JOURNAL	1024	/* blocks */
#define LANEFS_NAME_MAX		255
#define LANEFS_LABEL_MAX	32	/* bytes */
#define LANEFS_LINK_MAX		0x7fffffff
#define LANEFS_SYMLINK_MAX	4095	/* bytes; Linux takes no longer path */
#define LANEFS_MAX_LEVEL	5	/* of an inode's tree */

/* lh_magic: what a block is. The superblock's says "LANE". */
#define LANEFS_MAGIC_SUPER	0x454e414c
#define LANEFS_MAGIC_DOMAIN	0x4d4f444c	/* "LDOM" */
#define LANEFS_MAGIC_IBITMAP	0x504d424c	/* "LBMP", inode bitmap */
#define LANEFS_MAGIC_OBITMAP	0x504d4f4c	/* "LOMP", orphan bitmap */
#define LANEFS_MAGIC_BBITMAP	0x504b424c	/* "LBKP", block bitmap */
#define LANEFS_MAGIC_ITABLE	0x4154494c	/* "LITA" */
#define LANEFS_MAGIC_OWNERS	0x4e574f4c	/* "LOWN" */
#define LANEFS_MAGIC_NODE	0x444f4e4c	/* "LNOD" */
#define LANEFS_MAGIC_EXTENTS	0x5458454c	/* "LEXT" */
#define LANEFS_MAGIC_DIRENTS	0x5249444c	/* "LDIR" */
#define LANEFS_MAGIC_SYMLINK	0x4d59534c	/* "LSYM" */
#define LANEFS_MAGIC_XATTR	0x5441584c	/* "LXAT" */
#define LANEFS_MAGIC_JDESC	0x53444a4c	/* "LJDS" */
#define LANEFS_MAGIC_JREVOKE	0x56524a4c	/* "LJRV" */
#define LANEFS_MAGIC_JCOMMIT	0x4d434a4c	/* "LJCM" */

/*
 * The first 64 bytes of every metadata block.
 *
 * lh_crc is CRC32C (polynomial 0x82f63b78 reflected, start ~0, result not inverted, as the
 * kernel's crc32c(~0, ...)) of the 4096 bytes with lh_crc itself taken as 0.
 */
struct lanefs_header {
	__le32	lh_magic;
	__le32	lh_crc;
	__le64	lh_block;	/* this block's number (of a journaled copy: where it belongs) */
	__u8	lh_uuid[16];
	__le64	lh_owner;	/* tree, symlink, xattr: the inode's number; super: 0; others: the domain's */
	__le64	lh_seq;		/* transaction that wrote it; 0: mkfs, fsck, or not journaled */
	__le16	lh_level;	/* of a tree block: 0 for leaves */
	__le16	lh_count;	/* records in a tree, xattr, descriptor or revoke block */
	__le16	lh_used;	/* directory leaf, xattr: bytes in use, this header included */
	__le16	lh_reserved;
	__le64	lh_epoch;	/* of lh_seq */
};

#define LANEFS_HEADER_SIZE	64
#define LANEFS_BODY_SIZE	(LANEFS_BLOCK_SIZE - LANEFS_HEADER_SIZE)
#define LANEFS_BITMAP_BITS	(LANEFS_BODY_SIZE * 8)			/* 32256 */

/* Feature bits. Unknown compat: ignore; ro_compat: mount read-only; incompat: do not mount. */
#define LANEFS_RO_COMPAT_SPAN	0x1ULL	/* span directories are kept */

#define LANEFS_INCOMPAT_LOG	0x1ULL	/* data is never written over; blocks have owners */

#define LANEFS_COMPAT_KNOWN	0ULL
#define LANEFS_RO_COMPAT_KNOWN	LANEFS_RO_COMPAT_SPAN
#define LANEFS_INCOMPAT_KNOWN	LANEFS_INCOMPAT_LOG

/* sb_state */
#define LANEFS_STATE_CLEAN	1	/* unmounted; the journals are void */
#define LANEFS_STATE_MOUNTED	2	/* mounted, or crashed: recover */
#define LANEFS_STATE_ERROR	0x8000	/* flag: damage was found, fsck must look */

/*
 * Block 0, and a copy in each domain's first block (lh_block tells where it lies). The copies are
 * written after block 0; they serve fsck only. Where they differ the highest epoch is the newest.
 */
struct lanefs_super_block {
	struct lanefs_header sb_header;
	__le32	sb_version;
	__le32	sb_block_shift;
	__le64	sb_compat;
	__le64	sb_ro_compat;
	__le64	sb_incompat;
	__le64	sb_blocks;		/* on the device */
	__le64	sb_domain_start;	/* first block of domain 0 */
	__le64	sb_domain_blocks;	/* of each domain */
	__le64	sb_domain_inodes;	/* of each domain: indices 0 to sb_domain_inodes - 1 */
	__le32	sb_domains;
	__le32	sb_journal_blocks;	/* of each domain */
	__le32	sb_span_dirs;		/* of each domain: 1 to 16, a power of two */
	__le32	sb_state;		/* changes with each mount */
	__le64	sb_epoch;		/* changes with each read-write mount; mkfs writes 1 */
	__le64	sb_hash_seed[2];
	__u8	sb_label[LANEFS_LABEL_MAX];	/* zero-padded */
	__le64	sb_created;		/* seconds since 1970 */
	__u8	sb_reserved[LANEFS_BLOCK_SIZE - 208];
};

/* The second block of each domain. Where the journal begins is all that changes. */
struct lanefs_domain_block {
	struct lanefs_header db_header;	/* lh_epoch: epoch of the journal */
	__le32	db_domain;
	__le32	db_reserved0;
	__le64	db_base;		/* as lanefs_domain_layout() says */
	__le64	db_tail_seq;		/* the oldest transaction that is still needed; mkfs: 1 */
	__le64	db_tail;		/* where it begins: a block of the journal, from 0 */
	__u8	db_reserved[LANEFS_BLOCK_SIZE - 96];
};

/* Inode numbers. */
#define LANEFS_DOMAIN_SHIFT	40
#define LANEFS_ROOT_INDEX	1	/* the root directory, in domain 0 */
#define LANEFS_SPAN_INDEX	8	/* span directories: 8 to 8 + sb_span_dirs - 1 */
#define LANEFS_MAX_SPAN_DIRS	16
#define LANEFS_FIRST_INDEX	32	/* those below are marked as used by mkfs */
#define LANEFS_ROOT_INO		LANEFS_ROOT_INDEX

#define LANEFS_INODE_SIZE	256
#define LANEFS_INODES_PER_BLOCK	15
#define LANEFS_ROOT_SIZE	128
#define LANEFS_ROOT_RECORDS	8
#define LANEFS_NODE_RECORDS	(LANEFS_BODY_SIZE / 16)			/* 252 */

/* An inode in use has di_mode and di_ino set. The reserved ones that have no purpose are zero. */
struct lanefs_dinode {
	__le16	di_mode;
	__le16	di_level;	/* of the tree */
	__le16	di_count;	/* records in di_root */
	__le16	di_reserved0;
	__le32	di_uid;
	__le32	di_gid;
	__le32	di_nlink;
	__le32	di_flags;
	__le64	di_size;	/* directory: 4096 times its leaf blocks */
	__le64	di_blocks;	/* blocks held: data, tree, symlink and xattr blocks */
	__le64	di_atime;	/* seconds since 1970, signed */
	__le64	di_mtime;
	__le64	di_ctime;
	__le64	di_btime;
	__le32	di_atime_ns;
	__le32	di_mtime_ns;
	__le32	di_ctime_ns;
	__le32	di_btime_ns;
	__le32	di_generation;
	__le32	di_rdev;	/* device file: as the kernel's new_encode_dev() */
	__le64	di_ino;		/* its own number */
	__le64	di_xattr;	/* block of extended attributes; 0: none */
	__le64	di_parent;	/* directory: "..", the root's is the root; span directories, files: 0 */
	__le32	di_shift_at;	/* a shift that is under way; di_shift_by 0: none */
	__le32	di_shift_by;
	__u8	di_root[LANEFS_ROOT_SIZE];
};

/* di_flags: bits as those of FS_IOC_GETFLAGS. Others are damage (core/flags.h). */
#define LANEFS_FLAG_SYNC	0x00000008U
#define LANEFS_FLAG_IMMUTABLE	0x00000010U
#define LANEFS_FLAG_APPEND	0x00000020U
#define LANEFS_FLAG_NODUMP	0x00000040U
#define LANEFS_FLAG_NOATIME	0x00000080U
#define LANEFS_FLAG_DIRSYNC	0x00010000U	/* directories only */

/* Flags of files and directories; and of other inodes. */
#define LANEFS_FLAGS_FILE	(LANEFS_FLAG_SYNC | LANEFS_FLAG_IMMUTABLE | LANEFS_FLAG_APPEND | \
				 LANEFS_FLAG_NODUMP | LANEFS_FLAG_NOATIME)
#define LANEFS_FLAGS_OTHER	(LANEFS_FLAG_NODUMP | LANEFS_FLAG_NOATIME)
#define LANEFS_FLAGS_INHERITED	(LANEFS_FLAG_SYNC | LANEFS_FLAG_NODUMP | LANEFS_FLAG_NOATIME | \
				 LANEFS_FLAG_DIRSYNC)

#define LANEFS_INLINE_SYMLINK	(LANEFS_ROOT_SIZE - 1)

struct lanefs_index {
	__le64	ix_key;		/* extent map: logical block; directory: entry's key */
	__le64	ix_block;
};

/* Extents are sorted and do not overlap. */
struct lanefs_extent {
	__le32	ex_logical;
	__le32	ex_length;	/* blocks, 1 to LANEFS_EXTENT_MAX; may have LANEFS_EXTENT_UNWRITTEN */
	__le64	ex_block;
};

#define LANEFS_EXTENT_UNWRITTEN	0x80000000U	/* allocated, reads as zeros */
#define LANEFS_EXTENT_MAX	0x7fffffffU
#define LANEFS_MAX_FILE_BLOCKS	0xffffffffULL	/* logical blocks 0 to 0xfffffffe */

#define LANEFS_SEGMENT_BLOCKS	512	/* 2 MiB */
#define LANEFS_SEGMENTS		(LANEFS_BITMAP_BITS / LANEFS_SEGMENT_BLOCKS)	/* of a group: 63 */

/* The owner of a data block: 12 bytes, so that the entries of half a segment fill a block. */
struct lanefs_owner {
	__le32	ow_logical;
	__le32	ow_ino[2];	/* low half first */
};

#define LANEFS_OWNERS		256	/* of a block */

struct lanefs_dirent {
	__le64	de_key;
	__le64	de_ino;
	__le16	de_rec_len;	/* LANEFS_DIRENT_SIZE(de_name_len) */
	__le16	de_name_len;	/* 1 to 255; in a span directory 8 more */
	__u8	de_type;	/* as the kernel's FT_REG_FILE (1), FT_DIR (2), ... */
	__u8	de_reserved[3];
	__u8	de_name[];
};

#define LANEFS_DIRENT_SIZE(name_len)	((24 + (name_len) + 7) & ~7U)
#define LANEFS_KEY_SEQ_BITS	7
#define LANEFS_KEY_SEQ_MASK	0x7fULL
#define LANEFS_HASH_MASK	0x00ffffffffffffffULL
/* The key of a name's first entry from its 64-bit hash: the top 56 bits, but never all ones. */
#define LANEFS_HASH_KEY(hash) \
	((((hash) >> 8) == LANEFS_HASH_MASK ? LANEFS_HASH_MASK - 1 : (hash) >> 8) \
	 << LANEFS_KEY_SEQ_BITS)
#define LANEFS_KEY_HASH(key)	((key) >> LANEFS_KEY_SEQ_BITS)

struct lanefs_xattr {
	__le16	xa_value_len;	/* may be 0 */
	__u8	xa_name_len;	/* 1 to LANEFS_XATTR_NAME_MAX; of an ACL: 0 */
	__u8	xa_space;
	__u8	xa_name[];
};

/* xa_space: the prefix of the name */
#define LANEFS_XATTR_USER	1	/* "user." */
#define LANEFS_XATTR_TRUSTED	2	/* "trusted." */
#define LANEFS_XATTR_SECURITY	3	/* "security." */
#define LANEFS_XATTR_ACL_ACCESS	4	/* "system.posix_acl_access": that is all of the name */
#define LANEFS_XATTR_ACL_DEFAULT 5	/* "system.posix_acl_default", the same */

static inline _Bool lanefs_xattr_is_acl(__u8 space)
{
	return space == LANEFS_XATTR_ACL_ACCESS || space == LANEFS_XATTR_ACL_DEFAULT;
}

#define LANEFS_ACL_VERSION	2

struct lanefs_acl_entry {
	__le16	ae_tag;
	__le16	ae_perm;	/* 4: read, 2: write, 1: execute */
	__le32	ae_id;		/* of a named user or group; others: LANEFS_ACL_NO_ID */
};

/* ae_tag */
#define LANEFS_ACL_USER_OBJ	0x01	/* the owner */
#define LANEFS_ACL_USER		0x02
#define LANEFS_ACL_GROUP_OBJ	0x04	/* the inode's group */
#define LANEFS_ACL_GROUP	0x08
#define LANEFS_ACL_MASK		0x10
#define LANEFS_ACL_OTHER	0x20
#define LANEFS_ACL_NO_ID	0xffffffffU

#define LANEFS_XATTR_NAME_MAX	250	/* with its prefix a name has at most 255 bytes */
#define LANEFS_XATTR_SIZE(name_len, value_len)	((4 + (name_len) + (value_len) + 3) & ~3U)
#define LANEFS_XATTR_VALUE_MAX	(LANEFS_BODY_SIZE - 4 - 1)		/* 4027, if it is alone */

/* Journal: of descriptor and revoke blocks the body is an array of lh_count block numbers. */
#define LANEFS_JOURNAL_RECORDS	(LANEFS_BODY_SIZE / 8)			/* 504 */

struct lanefs_commit_block {
	struct lanefs_header jc_header;
	__le64	jc_blocks;	/* of the transaction in the journal, this block included */
	__le64	jc_time;	/* nanoseconds since 1970 */
	__le64	jc_needs[LANEFS_MAX_DOMAINS];	/* sequence in each domain; 0: none; own: 0 */
	__u8	jc_reserved[LANEFS_BLOCK_SIZE - 64 - 16 - 8 * LANEFS_MAX_DOMAINS];
};

/* Where the parts of a domain lie: absolute block numbers. */
struct lanefs_layout {
	__u64	base;
	__u64	end;		/* first block after the domain */
	__u64	journal;
	__u64	journal_blocks;
	__u64	ibitmap;
	__u64	obitmap;
	__u64	ibitmap_blocks;	/* also of the orphan bitmap */
	__u64	bbitmap;
	__u64	bbitmap_blocks;	/* the number of allocation groups */
	__u64	itable;
	__u64	itable_blocks;
	__u64	owners;
	__u64	owners_blocks;	/* without LANEFS_INCOMPAT_LOG: none */
	__u64	data;		/* first block that is not the domain's own */
};

#ifdef __KERNEL__
#define lanefs_blocks_for(n, per)	div_u64((n) + (per) - 1, (per))
#else
#define lanefs_blocks_for(n, per)	(((n) + (per) - 1) / (per))
#endif

/* The layout of domain `domain`, from values of the superblock that were checked before. */
static inline void lanefs_domain_layout(struct lanefs_layout *layout, __u32 domain, __u64 start,
					__u64 blocks, __u64 inodes, __u32 journal_blocks,
					__u64 incompat)
{
	layout->base = start + domain * blocks;
	layout->end = layout->base + blocks;
	layout->journal = layout->base + 2;
	layout->journal_blocks = journal_blocks;
	layout->ibitmap = layout->journal + journal_blocks;
	layout->ibitmap_blocks = lanefs_blocks_for(inodes, LANEFS_BITMAP_BITS);
	layout->obitmap = layout->ibitmap + layout->ibitmap_blocks;
	layout->bbitmap = layout->obitmap + layout->ibitmap_blocks;
	layout->bbitmap_blocks = lanefs_blocks_for(blocks, LANEFS_BITMAP_BITS);
	layout->itable = layout->bbitmap + layout->bbitmap_blocks;
	layout->itable_blocks = lanefs_blocks_for(inodes, LANEFS_INODES_PER_BLOCK);
	layout->owners = layout->itable + layout->itable_blocks;
	layout->owners_blocks = incompat & LANEFS_INCOMPAT_LOG ?
				lanefs_blocks_for(blocks, LANEFS_OWNERS) : 0;
	layout->data = layout->owners + layout->owners_blocks;
}

static inline __u64 lanefs_ino(__u32 domain, __u64 index)
{
	return (__u64)domain << LANEFS_DOMAIN_SHIFT | index;
}

static inline __u32 lanefs_ino_domain(__u64 ino)
{
	return (__u32)(ino >> LANEFS_DOMAIN_SHIFT);
}

static inline __u64 lanefs_ino_index(__u64 ino)
{
	return ino & ((1ULL << LANEFS_DOMAIN_SHIFT) - 1);
}

#endif
