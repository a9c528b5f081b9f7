#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Second stage of a guest: prepares the machine, runs the job, hands its exit status to the host.
# /control and /state are shared with the host. It reads modules/order and modules/*.ko to load and
# `job` to run in the one; it writes `status` and `heartbeat` to the other.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
# No udev runs here: device-mapper makes its own device nodes.
export DM_DISABLE_UDEV=1

finish() {
	echo "$1" >/state/status
	sync -f /state/status
	# Not `sync`: a file system under test that hangs must not keep the guest alive.
	echo o >/proc/sysrq-trigger
	sleep 60
}

mount -t tmpfs -o mode=755 run /run
mount -t tmpfs -o mode=1777 tmp /tmp
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mount -t securityfs securityfs /sys/kernel/security 2>/dev/null
mount -t selinuxfs selinuxfs /sys/fs/selinux 2>/dev/null
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
ln -s /proc/self/fd /dev/fd
hostname fscale-guest 2>/dev/null || echo fscale-guest >/proc/sys/kernel/hostname
busybox ip link set lo up 2>/dev/null
# 5 = warnings and worse, as the stack of an OOM or of lockdep: the console is a slow serial line, and
# the whole log stays readable with dmesg
echo 5 >/proc/sys/kernel/printk
stty -F /dev/ttyS1 raw -echo

# Device nodes whose modules the kernel loads when they are opened, such as /dev/fuse; they are udev's
# part of the work, too. A line of the file is "fuse fuse c10:229".
while read -r module node device; do
	case $module in \#*) continue ;; esac
	numbers=${device#?}
	mkdir -p "$(dirname "/dev/$node")"
	[ -e "/dev/$node" ] ||
		mknod -m 600 "/dev/$node" "${device%"$numbers"}" "${numbers%:*}" "${numbers#*:}"
done <"/lib/modules/$(uname -r)/modules.devname"
while read -r module; do
	# One that is missing or built in is no error: the runner says what it lacks.
	modprobe -q "$module"
done </control/modules/wanted
# Its mount point comes with the module.
mount -t configfs configfs /sys/kernel/config 2>/dev/null
if [ -d /control/bin ]; then
	cp /control/bin/* /usr/local/sbin/
fi
while read -r module; do
	for needed in $(modinfo -F depends "/control/modules/$module" | tr , ' '); do
		modprobe -q "$needed"
	done
	# Parameters on the kernel's command line, as modprobe would pass them: each is a word.
	parameters=$(tr ' ' '\n' </proc/cmdline | sed -n "s/^$(basename "$module" .ko)\.//p")
	# shellcheck disable=SC2086
	if ! insmod "/control/modules/$module" $parameters 2>/dev/ttyS1; then
		echo "fscale-guest: $module cannot be loaded; see the console log" >/dev/ttyS1
		dmesg | tail -n 20 >/dev/console
		finish 2
	fi
done </control/modules/order

if [ -d /control/filesystems ]; then
	# File systems of the user's own beside the repository's, which is read-only.
	mkdir /run/filesystems
	cp /fscale/fscale/configs/filesystems/* /control/filesystems/* /run/filesystems/
	mount --bind /run/filesystems /fscale/fscale/configs/filesystems
fi

# Before the job: a guest without a heartbeat has done nothing and can be booted again.
echo >/state/heartbeat
while echo >/state/heartbeat; do
	if [ -e /control/dump ]; then
		# The host is about to end this guest: show what is stuck.
		dmesg -n 7
		echo w >/proc/sysrq-trigger
	fi
	sleep 5
done &

/bin/sh /control/job </dev/null 2>&1 | cat >/dev/ttyS1
finish "$(cat /run/job-status 2>/dev/null || echo 1)"
