/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of the C library that QEMU gets from here, as this object is preloaded:
 * its monotonic clock is the guest's time, its main loop sleeps until that has
 * come, and the scheduler learns which thread sleeps and which is woken.
 */
#ifndef FSCALE_SIM_SHIM_H
#define FSCALE_SIM_SHIM_H

#include <stdbool.h>

/* False where the object is not preloaded, or its event file descriptor cannot be had. */
bool shim_open(void);

#endif
