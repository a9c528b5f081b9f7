// SPDX-License-Identifier: GPL-2.0-only
/* Hangs all CPUs when the RAM disk of a cell is made. */
#include <linux/module.h>
#include <linux/smp.h>

static int rd_nr;
module_param(rd_nr, int, 0444);
static unsigned long rd_size;
module_param(rd_size, ulong, 0444);

static void hang(void *unused)
{
	local_irq_disable();
	for (;;)
		cpu_relax();
}

static int __init brd_init(void)
{
	on_each_cpu(hang, NULL, 0);
	return 0;
}
module_init(brd_init);
MODULE_LICENSE("GPL");
