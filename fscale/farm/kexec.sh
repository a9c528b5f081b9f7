#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Boots another kernel on this machine by kexec, and leaves the machine as it was:
#   kexec.sh adopt DIRECTORY OTHER                    takes over what a killed command left; prints it
#   kexec.sh load DIRECTORY RELEASE [IMAGE MODULES]   files of DIRECTORY/objects; else an installed one
#   kexec.sh go DIRECTORY                             boots what was loaded
#   kexec.sh settle DIRECTORY                         waits until the boot is over and CPUs are idle
#   kexec.sh pstore DIRECTORY                         prints what crashes have stored since the load
#   kexec.sh leave DIRECTORY                          removes all, and reboots from another kernel
# The boot loader is not changed: each reset leads back to the machine's own kernel.
set -eu
units=/etc/systemd/system
action=$1 directory=$2
shift 2

fail() {
    echo "$1" >&2
    exit 1
}

running() {
    uname -rv
    sed 's/BOOT_IMAGE=[^ ]* *//' /proc/cmdline
}

adopt() {
    other=$1
    [ -d "$other" ] || exit 0
    for file in home links loaded; do
        [ ! -e "$other/$file" ] || cp -p "$other/$file" "$directory"
    done
    rm -rf "$other"
    echo "$other"
}

load() {
    release=$1
    command -v kexec >/dev/null || fail "kexec is not installed; apt-get install kexec-tools"
    case $(stat -f -c %T "$directory") in
    tmpfs | ramfs) fail "/var/tmp lies in memory and does not outlive a boot; mount a disk there" ;;
    esac
    [ -e "$directory/home" ] || running >"$directory/home"
    if [ $# = 1 ]; then
        image=/boot/vmlinuz-$release initrd=/boot/initrd.img-$release
        [ -e "$initrd" ] || initrd=/boot/initramfs-$release.img
        [ -e "$image" ] || fail "no kernel $release is installed: there is no $image"
    else
        # Two kernels may differ only in their modules.
        image=$directory/objects/$2 kernel=$directory/kernels/$2-$3
        initrd=$kernel/initrd
        install_modules "$3"
    fi
    touch "$directory/loaded"
    ! command -v systemctl >/dev/null || arm
    own=$(tail -n 1 "$directory/home")
    kernels=${own%% -- *} # what follows are arguments of init
    ours="$kernels panic=10 oops=panic${own#"$kernels"}"
    kexec -l "$image" --initrd="$initrd" --command-line="$ours" ||
        fail "kexec does not load $release, as with secure boot or kernel.kexec_load_disabled=1"
}

# Perhaps nobody comes back to the next kernel. Fifteen minutes after its boot, a machine that is not
# held leaves it.
arm() {
    leave="mkdir -p /run/fscale; flock -n /run/fscale/held sh $0 leave $directory"
    printf '[Service]\nType=oneshot\nExecStart=/bin/sh -c "%s"\n' "$leave" \
        >"$directory/fscale-leave.service"
    printf '[Timer]\nOnBootSec=900\n[Install]\nWantedBy=timers.target\n' \
        >"$directory/fscale-leave.timer"
    systemctl stop fscale-leave.timer 2>/dev/null || : # of the kernel that runs, which is held
    install -m 644 -t "$units" "$directory"/fscale-leave.*
    systemctl --quiet enable fscale-leave.timer
}

disarm() {
    systemctl --quiet disable --now fscale-leave.timer
    rm -f "$units"/fscale-leave.* "$units"/timers.target.wants/fscale-leave.timer
}

install_modules() {
    link=/lib/modules/$release
    case $(readlink "$link" || [ ! -e "$link" ] || echo "$link") in
    '' | /var/tmp/fscale.*) ;;
    *) fail "a kernel $release is installed: build the other with another CONFIG_LOCALVERSION" ;;
    esac
    echo "$link" >>"$directory/links"
    ln -sfnT "$kernel/modules/$release" "$link"
    [ ! -e "$kernel/whole" ] || return 0
    rm -rf "$kernel" # of a load that failed, or that a crash ended
    mkdir -p "$kernel/modules"
    tar -xf "$directory/objects/$1" -C "$kernel/modules"
    make_initramfs
    sync
    touch "$kernel/whole"
}

make_initramfs() {
    if command -v mkinitramfs >/dev/null; then
        # It asks this file whether the kernel can unpack what it makes, and refuses without it.
        config=/boot/config-$release
        if [ ! -e "$config" ]; then
            trap 'rm -f "$config"' EXIT
            echo "$config" >>"$directory/links"
            echo CONFIG_RD_GZIP=y | install -m 644 /dev/stdin "$config"
        fi
        mkinitramfs -c gzip -o "$initrd" "$release"
    elif command -v dracut >/dev/null; then
        dracut --quiet "$initrd" "$release"
    else
        fail "neither mkinitramfs nor dracut is installed; apt-get install initramfs-tools"
    fi
}

# Services start when ssh is up already. What takes a CPU for longer than two minutes is no part of a
# boot.
settle() {
    ! command -v systemctl >/dev/null || timeout 300 systemctl is-system-running --wait >/dev/null || :
    tick=$(getconf CLK_TCK)
    for _ in $(seq 60); do
        before=$(($(busy)))
        sleep 2
        [ $((10 * ($(busy) - before))) -gt $((2 * tick)) ] || break # a tenth of a CPU
    done
}

# The terms of a sum: user, nice and system time of all CPUs.
busy() {
    sed -n 's/^cpu  *\([0-9]*\) \([0-9]*\) \([0-9]*\) .*/\1 + \2 + \3/p' /proc/stat
}

# systemd moves the files of /sys/fs/pstore.
pstore() {
    find /sys/fs/pstore /var/lib/systemd/pstore -type f -newer "$directory/loaded" 2>/dev/null |
        sort -r | xargs -r cat | tail -c 16384
}

go() {
    sync
    if [ -d /run/systemd/system ]; then systemctl kexec; else kexec -e; fi
}

leave() {
    [ -d "$directory" ] || exit 0
    # Nobody may read what is printed, and that must not end what prints it: systemctl reboot warns.
    trap '' PIPE
    set +e # where a kernel broke the root file system, nothing can be removed before it is left
    away=
    # Newer versions of systemd boot what is loaded instead of resetting the machine.
    [ ! -e "$directory/loaded" ] || kexec -u
    [ ! -e "$directory/loaded" ] || ! command -v systemctl >/dev/null || disarm
    # After an update the machine's own kernel is another one, without our arguments.
    [ ! -e "$directory/home" ] || case $(running) in
    "$(cat "$directory/home")") ;;
    *" oops=panic"*) away=yes ;;
    esac
    if [ -e "$directory/links" ]; then
        while read -r link; do
            case $link in
            */..*) ;;
            /lib/modules/*) [ ! -L "$link" ] || rm "$link" ;;
            /boot/config-*) [ "$(cat "$link" 2>/dev/null)" != CONFIG_RD_GZIP=y ] || rm -f "$link" ;;
            esac
        done <"$directory/links"
    fi
    rm -rf "$directory" # a task that hangs may write there
    [ -z "$away" ] || systemctl reboot || reboot || reboot -f
}

"$action" "$@"
