/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FSCALE_TURNS_H
#define FSCALE_TURNS_H

#include <bpf/libbpf.h>

#include "waits.h"

/* Run `child` to its end with the programs of a loaded object attached, or fail. */
void run_with(struct bpf_object *object, const struct settings *settings, char *child);

#endif
