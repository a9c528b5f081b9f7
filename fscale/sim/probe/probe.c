// SPDX-License-Identifier: GPL-2.0-only
/*
 * Primitives whose cost on a machine of given latencies can be worked out by hand:
 * each is a device, /dev/probe-NAME, and a write of one byte does it once.
 */
#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>

/* Each on lines of its own. */
static struct {
	atomic_long_t atomic ____cacheline_aligned_in_smp;
	long stored ____cacheline_aligned_in_smp;
	spinlock_t spinlock ____cacheline_aligned_in_smp;
	struct mutex mutex ____cacheline_aligned_in_smp;
	struct rw_semaphore rwsem ____cacheline_aligned_in_smp;
	long guarded ____cacheline_aligned_in_smp;
} shared = {
	.spinlock = __SPIN_LOCK_UNLOCKED(shared.spinlock),
	.mutex = __MUTEX_INITIALIZER(shared.mutex),
	.rwsem = __RWSEM_INITIALIZER(shared.rwsem),
};

static DEFINE_PER_CPU_ALIGNED(atomic_long_t, private_count);

static void do_private(void)
{
	atomic_long_inc(raw_cpu_ptr(&private_count));
}

static void do_atomic(void)
{
	atomic_long_inc(&shared.atomic);
}

static void do_store(void)
{
	WRITE_ONCE(shared.stored, 1);
}

static void do_spinlock(void)
{
	spin_lock(&shared.spinlock);
	shared.guarded++;
	spin_unlock(&shared.spinlock);
}

static void do_mutex(void)
{
	mutex_lock(&shared.mutex);
	shared.guarded++;
	mutex_unlock(&shared.mutex);
}

static void do_rwsem_read(void)
{
	down_read(&shared.rwsem);
	READ_ONCE(shared.guarded);
	up_read(&shared.rwsem);
}

static void do_rwsem_write(void)
{
	down_write(&shared.rwsem);
	shared.guarded++;
	up_write(&shared.rwsem);
}

#define PROBE(primitive)							\
static ssize_t primitive##_write(struct file *file, const char __user *buffer,	\
				 size_t size, loff_t *position)			\
{										\
	do_##primitive();							\
	return size;								\
}										\
static const struct file_operations primitive##_operations = {			\
	.owner = THIS_MODULE,							\
	.write = primitive##_write,						\
};										\
static struct miscdevice primitive##_device = {					\
	.minor = MISC_DYNAMIC_MINOR,						\
	.name = "probe-" #primitive,						\
	.fops = &primitive##_operations,					\
}

PROBE(private);
PROBE(atomic);
PROBE(store);
PROBE(spinlock);
PROBE(mutex);
PROBE(rwsem_read);
PROBE(rwsem_write);

static struct miscdevice *const devices[] = {
	&private_device, &atomic_device,     &store_device,	  &spinlock_device,
	&mutex_device,	 &rwsem_read_device, &rwsem_write_device,
};

static int __init probe_init(void)
{
	size_t i;
	int error;

	for (i = 0; i < ARRAY_SIZE(devices); i++) {
		error = misc_register(devices[i]);
		if (error)
			goto err;
	}
	return 0;

err:
	while (i--)
		misc_deregister(devices[i]);
	return error;
}

static void __exit probe_exit(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		misc_deregister(devices[i]);
}

module_init(probe_init);
module_exit(probe_exit);
MODULE_DESCRIPTION("Primitives for the manycore simulator");
MODULE_LICENSE("GPL");
