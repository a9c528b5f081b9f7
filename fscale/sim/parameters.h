/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The simulated machine: numbers by name, all of which must be given
 * (docs/design/simulator-model.md).
 */
#ifndef FSCALE_SIM_PARAMETERS_H
#define FSCALE_SIM_PARAMETERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "slab.h"

#define MAX_VCPUS 256

/* name, least, most */
#define PARAMETERS(X)			\
	X(vcpus, 1, MAX_VCPUS)		\
	X(memory_mib, 1, 1 << 20)	\
	X(clock_mhz, 1, 100000)		\
	X(cpi_milli, 1, 100000)		\
	X(cores_per_socket, 1, MAX_VCPUS) \
	X(quantum, 0, 1000000)		\
	X(quantum_ordered, 0, 1000000)	\
	X(slice_max, 1, 10000000)	\
	X(lat_clean, 0, 100000)		\
	X(lat_clean_remote, 0, 100000)	\
	X(lat_dirty, 0, 100000)		\
	X(lat_dirty_remote, 0, 100000)	\
	X(lat_upgrade, 0, 100000)	\
	X(lat_upgrade_remote, 0, 100000) \
	X(lat_memory, 0, 100000)	\
	X(occupy_shared, 0, 100000)	\
	X(overlap, 0, 100000)		\
	X(migratory, 0, 1)		\
	X(cost_lock, 0, 100000)		\
	X(cost_pause, 0, 100000)	\
	X(cost_syscall, 0, 100000)	\
	X(string_bytes, 1, 4096)	\
	X(park, 0, 10000000)		\
	X(grace, 0, 100000)		\
	X(graces, 0, 1000)		\
	X(boot_slowdown, 1, 10000)	\
	X(coherence, 0, 1)		\
	X(queueing, 0, 1)		\
	X(skew, 0, 1000000000)		\
	X(hot_lines, 0, 1000)		\
	X(words, 0, 1)

struct parameters {
#define FIELD(name, least, most) uint64_t name;
	PARAMETERS(FIELD)
#undef FIELD
	const char *out;	/* output file */
	const char *rules;	/* file of rules.h; read when a point names a group */
	struct slab_layout slab;
	bool knows_slab;
};

/*
 * Read `key=value` arguments. False when one is unknown, malformed, out of range
 * or missing; then `why` says which. The strings must stay.
 */
bool parameters_read(struct parameters *p, int argc, char **argv, char *why, size_t size);

/* Print `"key":value,` for every number. */
void parameters_print(const struct parameters *p, FILE *file);

#endif
