/* SPDX-License-Identifier: GPL-2.0-only */
/* The cost of getting a cache line that another core has. */
#ifndef FSCALE_CALIBRATE_TRANSFERS_H
#define FSCALE_CALIBRATE_TRANSFERS_H

/* Nanoseconds a line: medians over rounds. */
struct transfer {
	double hit;		/* read of a line that this core has */
	double dirty;		/* read of a line that the other has modified */
	double dirty_add;	/* atomic addition to a line that the other has modified */
	double upgrade;		/* atomic addition to a line that both have, unmodified */
	double add_after_read;	/* atomic addition to a line that it has read just after the other wrote */
	double clean;		/* read of a line that others have, unmodified; NAN with two CPUs */
};

/*
 * From `from` to `to`; `third` shares lines with `from` (-1: there is none).
 * Returns 0, or -1 with errno and *call.
 */
int transfer_measure(int from, int to, int third, struct transfer *transfer, const char **call);

#endif
