/* SPDX-License-Identifier: GPL-2.0-only */
/* The BPF programs that fscale-locks contains, and how they are loaded. */
#ifndef FSCALE_PROGRAM_H
#define FSCALE_PROGRAM_H

#include <bpf/libbpf.h>
#include <stddef.h>

/* The compiled locks.bpf.c and memory.bpf.c: see embed.S. */
extern const char locks_begin[], locks_end[], memory_begin[], memory_end[];

/* Say what failed, and why by errno, and exit. */
_Noreturn void fail(const char *what);

/* Load a program with its settings, or fail. */
struct bpf_object *program_open(const char *begin, const char *end, const void *settings,
				size_t size);

/* The descriptor of a map of a program, or fail. */
int program_map(const struct bpf_object *object, const char *name);

#endif
