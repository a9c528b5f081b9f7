// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "waits.h"

_Noreturn void fail(const char *what)
{
	fprintf(stderr, "fscale-locks: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

struct bpf_object *program_open(const char *begin, const char *end, const void *settings,
				size_t size)
{
	struct bpf_object *object;
	struct bpf_map *map;

	object = bpf_object__open_mem(begin, (size_t)(end - begin), NULL);
	if (!object)
		fail("cannot open a BPF program");
	map = bpf_object__find_map_by_name(object, SETTINGS);
	if (!map || bpf_map__set_initial_value(map, settings, size))
		fail("cannot write the settings of a BPF program");
	if (bpf_object__load(object))
		fail("cannot load a BPF program");
	return object;
}

int program_map(const struct bpf_object *object, const char *name)
{
	const int fd = bpf_object__find_map_fd_by_name(object, name);

	if (fd < 0)
		fail(name);
	return fd;
}
