#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: GPL-2.0-only
# First process of a guest: loads the drivers of its disks, stacks the root, goes over to it.
# Disks are squashfs images, found by their serial number:
#   root (the Debian tree), modules (lib/modules), python (site-packages), fscale (the repository).

die() {
	echo "fscale-guest: $*" >&2
	# The kernel panics when its first process ends; the host sees that at once.
	exit 1
}

/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
while read -r module; do
	insmod "/modules/$module" || die "cannot load $module"
done </modules/order
if grep -q fscale.probe /proc/cmdline; then
	echo "fscale-guest: alive" >/dev/console
	poweroff -f
fi

for disk in /sys/block/vd*; do
	name=$(cat "$disk/serial")
	mkdir -p "/layers/$name"
	mount -t squashfs -o ro "/dev/${disk##*/}" "/layers/$name" || die "cannot mount the $name image"
done
[ -d /layers/root ] || die "no disk carries the root image"

mkdir -p /top /new
mount -t tmpfs -o mode=755 top /top
mkdir /top/upper /top/work
mount -t overlay -o lowerdir=/layers/root,upperdir=/top/upper,workdir=/top/work root /new ||
	die "cannot stack the root"
for name in python fscale; do
	[ -d "/layers/$name" ] || continue
	mkdir -p "/new/$name"
	mount --move "/layers/$name" "/new/$name"
done
if [ -d /layers/modules ]; then
	mkdir -p /new/lib/modules
	mount --move /layers/modules /new/lib/modules || die "cannot mount the modules"
fi
for tag in control state results; do
	mkdir -p "/new/$tag"
	mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none "$tag" "/new/$tag" ||
		die "cannot mount the host's $tag directory"
done
for dir in dev proc sys; do
	mount --move "/$dir" "/new/$dir"
done
exec switch_root /new /bin/sh /control/init
