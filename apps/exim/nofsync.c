// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into Exim, which Debian builds without `disable_fsync`: fsync and fdatasync do nothing.
 * The paper configured Exim the same way (Figure 1: "configured it to disable per-message fsync()").
 */
#include <unistd.h>

int fsync(int fd)
{
	(void)fd;
	return 0;
}

int fdatasync(int fd)
{
	(void)fd;
	return 0;
}
