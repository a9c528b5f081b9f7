/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_CORE_ACL_H
#define LANEFS_CORE_ACL_H

#include "shim.h"
#include "../format.h"

/* Whether it is an ACL as format.h has it: all entries that one needs, known, in order. */
bool lanefs_acl_valid(const void *value, size_t size);

#endif
