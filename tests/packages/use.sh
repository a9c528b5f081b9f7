#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Installs fscale in a minimal root, uses it there and removes it again. The repository that made the
# root is deleted first. Packages are in /shared: use.sh wheel|deb|dkms [all]. Without `all` it works
# beside others: no CPU goes offline, nothing is compared, and nothing simulated. It prints the
# seconds of each step.
set -euo pipefail

kind=$1 scope=${2-}
export DEBIAN_FRONTEND=noninteractive PATH=$PATH:/root/.local/bin
rm -rf /root/fscale
cd /root

step() {
	printf '%5s s: %s\n' "$SECONDS" "$1"
}

apt_install() {
	apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# What lies where packages put files, without what apt itself keeps.
traces() {
	find / -xdev \( -path /proc -o -path /shared -o -path /sys -o -path /tmp -o -path /var/lib/apt -o -path /var/cache \
		-o -path /var/log -o -path /var/lib/dpkg \) -prune -o \
		\( -iname '*fscale*' -o -iname '*lanefs*' \) -print |
		grep -v -e '^/root/results' -e '^/root/.cache/fscale' -e '^/run/fscale' || true
}

# Builds lanefs for the kernel of this release, and removes it again.
dkms_builds() {
	local headers
	apt_install dkms /shared/lanefs-dkms_*.deb linux-headers-amd64
	headers=$(dpkg-query -W -f '${Depends}' linux-headers-amd64 | grep -o 'linux-headers-[^ ,]*')
	[ -n "$(find /var/lib/dkms/lanefs -name 'lanefs.ko*')" ] ||
		dkms build "lanefs/$(dpkg-query -W -f '${Version}' lanefs-dkms)" -k "${headers#linux-headers-}"
	find /var/lib/dkms/lanefs -name 'lanefs.ko*' | grep .
	step "DKMS, $headers"
	apt-get purge -y -qq lanefs-dkms >/dev/null
}

# Ends the test: with 1 if anything is left.
ends_clean() {
	local left
	left=$(traces)
	[ -z "$left" ] || { printf 'left behind:\n%s\n' "$left" >&2; exit 1; }
	step "removed, without a trace but results and the user's cache"
	exit
}

apt-get update -qq
case $kind in
dkms)
	dkms_builds
	ends_clean
	;;
wheel)
	apt_install pipx build-essential libjansson-dev liburing-dev
	step "Debian packages that compile fscale's programs"
	pipx install /shared/*.whl >pipx.txt 2>&1 || { cat pipx.txt; exit 1; }
	environment=$(dirname "$(dirname "$(readlink -f /root/.local/bin/fscale)")")
	names=$("$environment/bin/python" -c '
from importlib.metadata import files
print(*{f.parts[0] for f in files("fscale") if f.suffix == ".py"})')
	[ "$names" = fscale ] || { echo "on the import path: $names" >&2; exit 1; }
	place=$environment
	;;
deb)
	apt_install /shared/fscale_*.deb /shared/lanefs-tools_*.deb e2fsprogs man-db
	! python3 -c 'import fscale' 2>/dev/null || { echo "fscale is on the import path" >&2; exit 1; }
	place=/usr/lib/fscale
	mkfs.lanefs -V
	man -w fscale fscale-run fscale-simulate fscale-suite mkfs.lanefs fsck.lanefs lanefs-dump
	MANWIDTH=80 man fscale-run | grep -q 'Exit codes'
	! MANWIDTH=80 man fscale | grep '<>' || exit 1
	ls /usr/share/bash-completion/completions/fscale /usr/share/zsh/vendor-completions/_fscale \
		/usr/share/fish/vendor_completions.d/fscale.fish
	;;
esac
du -sh "$place"
# It writes nothing where it is installed.
mount --bind "$place" "$place"
mount -o remount,bind,ro "$place"
step "installed"

apt_install e2fsprogs mount util-linux
cd /root
fscale --version
fscale doctor >doctor.txt || { cat doctor.txt; exit 1; }
fscale list workloads --json | grep -c '"id"'
step "doctor, list"
cores=$(nproc)
[ "$scope" != all ] || cores=1,$cores
fscale run quick --fs tmpfs,ext4 --workload MWCL --cores "$cores" --repetitions 1 --duration 0.2 \
	--wait 300 --output results/run 2>run.txt || { cat run.txt; exit 1; }
step "run"
fscale report results/run
grep -q 'fscale run quick' results/run/report.html
step "the first report"
if [ "$kind" = deb ]; then
	mkdir -m 777 /tmp/nobody
	setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp/nobody \
		fscale run quick --dir /tmp/nobody --workload MWCL --cores 1 --repetitions 1 \
		--duration 0.2 --output /tmp/nobody/results 2>nobody.txt || { cat nobody.txt; exit 1; }
	step "run by an ordinary user"
fi
if [ "$scope" = all ]; then
	code=0
	fscale ab --slices --base tmpfs --new tmpfs --workload MWCL --cores 1 --max-minutes 2 --wait 300 \
		--output results/ab 2>ab.txt >ab.out || code=$?
	# A comparison that had no time to decide ends with 1 as well; it is to come to its end.
	[ "$code" -le 1 ] || { cat ab.txt; exit 1; }
	tail -n 2 ab.out
	step "ab: exit code $code"
	apt_install mmdebstrap squashfs-tools busybox-static cpio kmod zstd make gcc libc6-dev
	fscale simulate --fs tmpfs --workload DRBL --cores 1,2 --kernel trixie --output results/sim
	step "simulate"
fi

umount "$place"
case $kind in
wheel) pipx uninstall fscale >/dev/null ;;
deb) apt-get purge -y -qq fscale lanefs-tools >/dev/null ;;
esac
ends_clean
