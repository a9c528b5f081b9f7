// SPDX-License-Identifier: GPL-2.0-only
/* Panics when the machine's network card is found, in the middle of a boot. */
#include <linux/module.h>
#include <linux/virtio_ids.h>
#include <linux/mod_devicetable.h>

static const struct virtio_device_id ids[] = {
	{ VIRTIO_ID_NET, VIRTIO_DEV_ANY_ID },
	{ 0 },
};
MODULE_DEVICE_TABLE(virtio, ids);

static int __init virtio_net_init(void)
{
	panic("planted");
}
module_init(virtio_net_init);
MODULE_LICENSE("GPL");
