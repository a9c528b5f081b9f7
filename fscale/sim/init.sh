#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: GPL-2.0-only
# First and only process of a simulated guest: it measures the points of /host/plan, one after another,
# each on a fresh file system. /host is the host's directory; points/ID.json is what its program printed.

die() {
	echo "fscale-sim: $*"
	echo "fscale-sim: $*" >/dev/console
	# The kernel panics when its first process ends; the host sees that at once.
	exit 1
}

# Leave the first $1 CPUs online; they only go, for the plan begins with the most.
online() {
	cpu=$online
	while [ "$cpu" -gt "$1" ]; do
		cpu=$((cpu - 1))
		echo 0 >"/sys/devices/system/cpu/cpu$cpu/online" || die "CPU $cpu does not go off line"
	done
	online=$1
}

# A fresh medium of $2 KiB of the kind $1; its device is in $device.
medium() {
	case $1 in
	brd)
		if [ -f /modules/brd.ko ]; then
			rmmod brd || die "brd is still in use"
			insmod /modules/brd.ko rd_nr=1 rd_size="$2" || die "cannot load brd"
		fi
		device=/dev/ram0
		;;
	null_blk)
		null=/sys/kernel/config/nullb/nullb0
		[ -d "$null" ] && rmdir "$null"
		{
			mkdir "$null" && echo 1 >"$null/memory_backed" && echo $(($2 / 1024)) >"$null/size" &&
				echo 0 >"$null/irqmode" && echo 1 >"$null/power"
		} || die "null_blk makes no device"
		device=/dev/nullb0
		;;
	none) device=none ;;
	*) die "no medium $1" ;;
	esac
}

# Grace periods without waiting, but not while a point is simulated: the guest's time is slow outside.
expedited() {
	echo "$1" >/sys/kernel/rcu_expedited || die "no /sys/kernel/rcu_expedited"
}

# Whether all CPUs were idle for 19 of 20 parts of a fifth of a second. Of /proc/uptime the second number
# is the idle time of all CPUs.
idle() {
	{ cat /proc/uptime && sleep 0.2 && cat /proc/uptime; } |
		awk -v cpus="$online" '{ up = $1 - up; idle = $2 - idle } END { exit idle < 0.95 * cpus * up }'
}

# What a file system leaves behind (inodes that RCU frees, pages) would run in the windows of the next.
rest() {
	for _ in $(seq 50); do
		idle && return 0
	done
	return 1
}

# Files that threads had open are released some time after the last thread has ended.
unmount() {
	for _ in $(seq 50); do
		umount /mnt 2>/dev/null && return 0
		sleep 0.1
	done
	umount /mnt
}

# What went wrong with a point: the host makes a cell of it, as soon as the file is there.
fail() {
	echo "$2" >"/host/points/$1.why"
	mv "/host/points/$1.why" "/host/points/$1.failed"
}

# point ID CORES KIND KIB FILESYSTEM OPTIONS MKFS PROGRAM ARGUMENT...
# MKFS is a shell command with "$device" in it, or nothing.
point() {
	id=$1 cores=$2 kind=$3 kib=$4 fs=$5 options=$6 mkfs=$7
	shift 7
	online "$cores"
	medium "$kind" "$kib"
	if [ -n "$mkfs" ] && ! eval "$mkfs" >"/host/points/$id.mkfs" 2>&1; then
		fail "$id" "mkfs failed: $(tail -n 3 "/host/points/$id.mkfs")"
	elif ! mount -t "$fs" -o "$options" "$device" /mnt 2>"/host/points/$id.mount"; then
		fail "$id" "mount failed: $(cat "/host/points/$id.mount")"
	else
		if rest; then
			expedited 0
			"$@" >"/host/points/$id.partial" 2>"/host/points/$id.stderr"
			echo $? >"/host/points/$id.status"
			expedited 1
			mv "/host/points/$id.partial" "/host/points/$id.json"
		else
			fail "$id" "the guest did not come to rest"
		fi
		unmount || die "cannot unmount after point $id"
	fi
}

# pivot_root() of workloads refuses the first root. A mount of the same files that covers it is
# another mount, and costs no memory.
if [ "$1" != covered ]; then
	/bin/busybox --install -s /bin
	mkdir /cover
	{ mount --bind / /cover && cd /cover && mount --move . /; } || die "cannot cover the first root"
	exec chroot . /init covered
fi

mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /mnt /host /tmp
while read -r module; do
	case $module in
	null_blk.ko) insmod "/modules/$module" nr_devices=0 ;;
	*) insmod "/modules/$module" ;;
	esac || die "cannot load $module"
done </modules/order
for module in /modules/under-test/*.ko; do
	[ ! -f "$module" ] || insmod "$module" || die "cannot load $module"
done
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none host /host || die "no host"
[ ! -d /sys/kernel/config ] || mount -t configfs config /sys/kernel/config
dd if=/proc/kallsyms of=/host/symbols bs=64k 2>/dev/null || die "no /proc/kallsyms"
mv /host/symbols /host/kallsyms
# The host tells the plugin by these where the objects are that cost nothing.
until [ -f /host/go ]; do sleep 0.01; done
online=$(nproc)
# shellcheck source=/dev/null
. /host/plan
: >/host/done
poweroff -f
