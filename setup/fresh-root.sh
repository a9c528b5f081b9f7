#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs commands as a newcomer would: in a minimal Debian 12 root that has git and make, in a clone of
# HEAD below /root, with /tmp on tmpfs. Each argument is a line for a shell; the first that fails ends
# it.
#
#     setup/fresh-root.sh 'make run' 'make test'
#     SUITE=trixie SHARED=build/packages setup/fresh-root.sh 'apt-get install -y /shared/*.deb'
#
# SUITE names another release of Debian, SHARED a directory that is /shared in the root.
#
# The root lies on a disk, or in the directory that ROOTS names, and is removed in the end. It is
# mounted in a mount namespace: the mounts end with the last process there, however that ends, and this
# machine never has them. A call that was killed (SIGKILL) leaves a directory, which the next one
# removes. Package registries are reached as this machine reaches them: by apt's sources and proxies,
# pip's settings, certificates.
#
# Exit codes: of the command that failed; 0 if none did; 2 where this machine cannot make such a root;
# 3 interrupted (SIGINT, SIGTERM, SIGHUP).
set -euo pipefail

SUITE=${SUITE:-bookworm}
GIB=15      # free space: the packages and caches of `make test`, rounded up
PATIENCE=60 # seconds for commands that are ended to put the machine back
NAME=fscale-fresh
# Only these of the caller's variables reach the commands.
HANDED_ON='^(PIP_.*|(http|https|ftp|all|no)_proxy|(HTTP|HTTPS|FTP|ALL|NO)_PROXY|SSL_CERT_FILE'
HANDED_ON+='|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$'

cannot() {
	echo "fresh-root: $1" >&2
	exit 2
}

# Copies a file or directory of this machine, if it is there, to its place in the root.
copy() {
	[ -e "$1" ] || return 0
	mkdir -p "$root$(dirname "$1")"
	cp -rL --preserve=mode "$1" "$root$(dirname "$1")/"
}

bootstrap() {
	local -a mirrors=() options=()
	local line
	if grep -qx "VERSION_CODENAME=$SUITE" /etc/os-release; then
		# shellcheck disable=SC2016 # a format of apt's
		while read -r line; do
			mirrors+=("deb $line main")
		done < <(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Origin: Debian' |
			sort -u)
	fi
	while read -r line; do
		options+=("--aptopt=${line%;}")
	done < <(apt-config dump | grep -E '^Acquire::(https?|ftp|ForceIPv.|Retries|Check-.*)[: ]')
	mmdebstrap --quiet --variant=minbase --include=git,make,ca-certificates "${options[@]}" \
		"$SUITE" "$root" "${mirrors[@]}"
}

inside() {
	local base=$1 top=$2 began=$SECONDS file name value
	shift 2
	root=$base/root
	# What is mounted below is of no other namespace, whatever this one shares with others.
	mount --bind "$base" "$base"
	mount --make-private "$base"
	if ! bootstrap >"$base/log" 2>&1; then
		tail -n 5 "$base/log" >&2
		cannot "mmdebstrap cannot make a root of Debian $SUITE: see above"
	fi
	# A root is a mount point.
	mount --rbind "$root" "$root"
	for file in proc sys dev; do
		mount --rbind "/$file" "$root/$file"
	done
	mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
	# One run has the machine at a time, whatever its root; and its journal outlives the root.
	mkdir -p /run/fscale "$root/run/fscale"
	mount --bind /run/fscale "$root/run/fscale"

	if [ -n "${SHARED-}" ]; then
		mkdir "$root/shared"
		mount --bind "$SHARED" "$root/shared" || cannot "SHARED=$SHARED cannot be mounted"
	fi

	local -a given=()
	while IFS='=' read -r -d '' name value; do
		[[ $name =~ $HANDED_ON ]] || continue
		given+=("$name=$value")
		case $value in /*) copy "$value" ;; esac
	done < <(env -0)
	for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt \
		/usr/local/share/ca-certificates; do
		copy "$file"
	done
	for file in .config/pip .pip; do
		[ ! -d ~/"$file" ] || { mkdir -p "$root/root/.config" && cp -r ~/"$file" "$root/root/$file"; }
	done
	git -c safe.directory='*' clone -q "$top" "$root/root/fscale" ||
		cannot "git cannot clone $top"
	# shellcheck disable=SC2016 # expanded there
	# Packages may be installed there without asking.
	exec env -i HOME=/root LANG=C.UTF-8 YES=1 "${given[@]}" \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		chroot "$root" bash -c '
			cd /root/fscale
			SECONDS=$1
			shift
			for line; do
				echo "== fresh root, after $SECONDS s: $line"
				bash -c "$line" || exit
			done
		' fresh-root "$((SECONDS - began))" "$@"
}

if [ "${1-}" = --inside ]; then
	shift
	inside "$@"
fi

# Prints the pids of a root's processes, in whatever namespaces they are.
processes() {
	local id
	id=$(stat -c %d:%i "$1" 2>/dev/null) || return 0
	{ stat -L -c '%d:%i %n' /proc/[0-9]*/root 2>/dev/null || true; } |
		awk -v id="$id" '$1 == id { split($2, part, "/"); print part[3] }'
}

# Prints what is mounted at a directory or below it, the deepest first.
mounts() {
	awk -v at="$1" '$5 == at || index($5, at "/") == 1 { print $5 }' /proc/self/mountinfo | sort -r
}

# Ends the processes of a root, at first with a signal unless that is empty; removes its directory.
remove() {
	local deadline=$((SECONDS + PATIENCE)) with=$2 pids
	while pids=$(processes "$1/root") && [ -n "$pids" ]; do
		# shellcheck disable=SC2086 # pids
		[ -z "$with" ] || kill "$with" $pids 2>/dev/null || true
		with=
		[ "$SECONDS" -lt "$deadline" ] || with=-KILL
		sleep 0.2
	done
	# Nothing is, unless mounts come here from other namespaces. rm would empty what is mounted.
	mounts "$1" | xargs -r -d '\n' -n 1 umount -l
	if [ -n "$(mounts "$1")" ]; then
		echo "fresh-root: $1 is left, as it cannot be unmounted" >&2
		return 1
	fi
	rm -rf --one-file-system "$1"
}

# shellcheck disable=SC2317 # a trap calls it
leave() {
	trap '' INT TERM HUP
	remove "$base" "$with"
}

# shellcheck disable=SC2317 # a trap calls it
interrupted() {
	trap '' INT TERM HUP
	with=''
	[ -z "$job" ] || kill "-$1" "-$job" 2>/dev/null || true
	exit 3
}

# Prints ROOTS, or else the first directory that is on a disk with enough room.
place() {
	local directory kind free seen=
	if [ -n "${ROOTS-}" ]; then
		[ -d "$ROOTS" ] || cannot "ROOTS=$ROOTS is no directory"
		realpath "$ROOTS"
		return
	fi
	for directory in ~ /var/tmp /var/lib; do
		kind=$(stat -f -c %T "$directory") || continue
		free=$(($(stat -f -c '%a * %S' "$directory") >> 30))
		if [ "$kind" != tmpfs ] && [ "$kind" != ramfs ] && [ "$free" -ge "$GIB" ]; then
			realpath "$directory"
			return
		fi
		seen+="; $directory: $kind, $free GiB"
	done
	cannot "no directory on a disk has $GIB GiB free${seen}. Give one with ROOTS=DIRECTORY"
}

[ $# -gt 0 ] || cannot "no command; for example: setup/fresh-root.sh 'make run' 'make test'"
[ "$(id -u)" -eq 0 ] || cannot "a root is made by root only; this is user $(id -un)"
propagation=private
mountpoint -q / || propagation=unchanged # in a chroot, whose root is no mount
unshare --mount --propagation "$propagation" true ||
	cannot "this user may not mount (CAP_SYS_ADMIN is missing, as in most containers)"
if ! command -v mmdebstrap >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive
	if ! apt-get update -qq || ! apt-get install -y -qq --no-install-recommends mmdebstrap; then
		cannot "mmdebstrap is not installed, and apt-get cannot install it"
	fi >/dev/null
fi
command -v git >/dev/null || cannot "git is not installed"
top=$(cd "$(dirname -- "$0")/.." && pwd)
changed=$(git -C "$top" -c safe.directory='*' status --porcelain) || cannot "git does not know $top"
[ -z "$changed" ] ||
	echo "fresh-root: what is not committed is left out" >&2

where=$(place)
# Whoever holds the lock of a root's directory uses it. Nobody looks while one is made.
exec 8<"$where"
flock 8
for old in "$where/$NAME".*; do
	[ -d "$old" ] || continue
	exec 9<"$old"
	if flock -n 9; then
		echo "fresh-root: $old is left from a call that was killed; removing it" >&2
		remove "$old" -TERM
	fi
	exec 9<&-
done
base=$(mktemp -d -p "$where" "$NAME.XXXXXX")
exec 9<"$base"
flock 9
exec 8<&-

job='' with=-TERM
trap leave EXIT
for signal in INT TERM HUP; do
	# shellcheck disable=SC2064 # this signal
	trap "interrupted $signal" "$signal"
done
set -m # the commands have a process group, and SIGINT is not ignored there
setpriv --pdeathsig KILL unshare --mount --propagation "$propagation" --kill-child \
	bash "$0" --inside "$base" "$top" "$@" </dev/null 9<&- &
job=$!
status=0
wait "$job" || status=$?
exit "$status"
