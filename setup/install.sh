#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Installs the Debian packages of the given lists that are missing; it prints them and asks first.
# Without root, or a yes, it prints the command and goes on if what cannot be done without is there.
set -eu

if ! command -v dpkg-query >/dev/null; then
	echo "Not Debian: docs/guide/installing.md names the packages of other distributions."
	exit 0
fi
names=$(awk '!/^#/ && NF { print $1 }' "$@")
missing=
for package in $names; do
	status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$status" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
	exit 0
fi

echo "Debian packages to install:$missing"
if [ "$(id -u)" -ne 0 ]; then
	echo "Not root: ask an administrator to run"
elif "$(dirname -- "$0")/agree.sh" "these $(echo "$missing" | wc -w) packages"; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	# shellcheck disable=SC2086 # the list is meant to be split
	apt-get install -y -qq --no-install-recommends $missing >/dev/null
	exit 0
elif [ $? -eq 2 ]; then
	exit 2
else
	echo "They are not installed. Later you can run"
fi
echo "    apt-get install --no-install-recommends$missing"
for package in build-essential libblkid-dev libjansson-dev liburing-dev python3-venv uuid-dev; do
	case " $missing " in
	*" $package "*)
		echo "Nothing can be built without $package." >&2
		exit 2
		;;
	esac
done
echo "Going on without them: what they would bring is left out."
