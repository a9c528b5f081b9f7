// SPDX-License-Identifier: GPL-2.0-only
/* Hangs all CPUs when the first loop device is needed, in the middle of a cell. */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/smp.h>

static void hang(void *unused)
{
	local_irq_disable();
	for (;;)
		cpu_relax();
}

static int __init loop_init(void)
{
	on_each_cpu(hang, NULL, 0);
	return 0;
}
module_init(loop_init);
MODULE_ALIAS("devname:loop-control");
MODULE_ALIAS_MISCDEV(LOOP_CTRL_MINOR);
MODULE_LICENSE("GPL");
