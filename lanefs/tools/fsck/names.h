/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_FSCK_NAMES_H
#define LANEFS_FSCK_NAMES_H

#include "check.h"

/* span.c: an entry of a directory, and one of a span directory; then whether they agree */
void note_shadow(struct check *c, u64 dir, const struct entry *entry);
void note_remote(struct check *c, u64 span, const struct entry *entry);
void check_span(struct check *c);

/* lost.c */
/* Gives an inode a name in /lost+found, which is made if it is not there. */
void connect_lost(struct check *c, u64 ino, u16 mode);
/* Finishes a truncation: takes the blocks beyond the end off, and the orphan's mark. */
void cut_to_size(struct check *c, u64 ino);

/* shift.c */
/* False: there is none to end. Else the orphan's mark is taken off as well. */
bool end_shift(struct check *c, u64 ino);

#endif
