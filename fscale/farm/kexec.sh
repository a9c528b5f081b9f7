#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Boots another kernel on this machine by kexec, and leaves the machine as it was:
#   kexec.sh adopt DIRECTORY                          takes over what killed commands left; prints it
#   kexec.sh load DIRECTORY RELEASE [IMAGE MODULES]   files of DIRECTORY/objects; else an installed one
#   kexec.sh go DIRECTORY                             boots what was loaded
#   kexec.sh pstore DIRECTORY                         prints what crashes have stored since the load
#   kexec.sh leave DIRECTORY                          removes all, and reboots from another kernel
# The boot loader is not changed: each reset leads back to the machine's own kernel.
set -eu
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

# Whoever holds the machine is the only one: directories that were held before are nobody's.
adopt() {
    for other in /var/tmp/fscale.??????????; do
        [ "$other" != "$directory" ] || continue
        [ -e "$other/busy" ] || continue
        [ "$(stat -c %u "$other")" = "$(stat -c %u "$directory")" ] || continue
        [ -e "$directory/home" ] || [ ! -e "$other/home" ] || cp "$other/home" "$directory/home"
        [ ! -e "$other/links" ] || cat "$other/links" >>"$directory/links"
        rm -rf "$other"
        echo "$other"
    done
}

load() {
    release=$1
    command -v kexec >/dev/null || fail "kexec is not installed; apt-get install kexec-tools"
    [ -e "$directory/home" ] || running >"$directory/home"
    if [ $# = 1 ]; then
        image=/boot/vmlinuz-$release initrd=/boot/initrd.img-$release
        [ -e "$initrd" ] || initrd=/boot/initramfs-$release.img
        [ -e "$image" ] || fail "no kernel $release is installed: there is no $image"
    else
        image=$directory/objects/$2 kernel=$directory/kernels/$2
        initrd=$kernel/initrd
        install_modules "$3"
    fi
    touch "$directory/loaded"
    own=$(tail -n 1 "$directory/home")
    kexec -l "$image" --initrd="$initrd" --command-line="$own panic=10 oops=panic"
}

install_modules() {
    link=/lib/modules/$release
    if [ -e "$link" ] && [ ! -L "$link" ]; then
        fail "a kernel $release is installed: build the other with another CONFIG_LOCALVERSION"
    fi
    if [ ! -d "$kernel/modules" ]; then
        mkdir -p "$kernel/modules"
        tar -xf "$directory/objects/$1" -C "$kernel/modules"
    fi
    echo "$link" >>"$directory/links"
    ln -sfnT "$kernel/modules/$release" "$link"
    [ -e "$initrd" ] || make_initramfs
}

make_initramfs() {
    if command -v mkinitramfs >/dev/null; then
        mkinitramfs -o "$initrd" "$release"
    elif command -v dracut >/dev/null; then
        dracut --quiet "$initrd" "$release"
    else
        fail "neither mkinitramfs nor dracut is installed; apt-get install initramfs-tools"
    fi
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
    away=
    [ ! -e "$directory/home" ] || [ "$(running)" = "$(cat "$directory/home")" ] || away=yes
    if [ -e "$directory/links" ]; then
        while read -r link; do
            case $link in
            */..*) ;;
            /lib/modules/*) [ ! -L "$link" ] || rm "$link" ;;
            esac
        done <"$directory/links"
    fi
    rm -rf "$directory" || : # a task that hangs may write there
    [ -z "$away" ] || systemctl reboot
}

"$action" "$@"
