/* SPDX-License-Identifier: GPL-2.0-only */
/* Costs on one core alone. */
#ifndef FSCALE_CALIBRATE_CORE_H
#define FSCALE_CALIBRATE_CORE_H

struct core {
	double cycle;		/* nanoseconds of a rotation that needs the one before it: a cycle */
	double add;		/* nanoseconds of an atomic addition to a line that the core has */
	double relax;		/* nanoseconds of the instruction of spin loops */
	double memory;		/* nanoseconds of a read that no cache answers */
	double string;		/* bytes a nanosecond that `rep movsb` moves within the first cache */
	double wake;		/* nanoseconds from a write to a pipe until its sleeping reader has it */
};

/* On `cpu`; `other` sleeps and is woken. Returns 0, or -1 with errno and *call. */
int core_measure(int cpu, int other, struct core *core, const char **call);

/* Nanoseconds of a cycle while all `count` CPUs compute; NAN in *cycle on failure. */
int core_clock(const int *cpus, unsigned int count, double *cycle, const char **call);

#endif
