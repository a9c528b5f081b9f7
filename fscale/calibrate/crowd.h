/* SPDX-License-Identifier: GPL-2.0-only */
/* Throughput of many cores that share one line or lock. */
#ifndef FSCALE_CALIBRATE_CROWD_H
#define FSCALE_CALIBRATE_CROWD_H

struct crowd {
	const char *name;
	void (*operation)(void *object, void *own);
};

/* Primitives of user space, ends with an empty one. */
extern const struct crowd crowds[];

/*
 * Operations per second of all `count` CPUs together, the median of windows; 0 or -1 with errno
 * and *call. *fairness is what the slowest did of the mean.
 */
int crowd_measure(const struct crowd *crowd, const int *cpus, unsigned int count, double *rate,
		  double *fairness, const char **call);

#endif
