#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Asks whether the Debian packages that it is given may be installed. YES=1 is a yes and YES=0 a no;
# otherwise the user at the terminal decides. Continuous integration (CI=true) is not asked.
#
# Exit codes: 0 yes, 1 no, 2 nobody can be asked.
set -eu

case ${YES-} in
1) exit 0 ;;
0) exit 1 ;;
esac
if [ -n "${CI-}" ] || ! [ -t 0 ]; then
	echo "Nothing was installed: without a terminal, YES=1 agrees to it and YES=0 goes on without," \
		"as in: make run YES=1" >&2
	exit 2
fi
printf 'Install %s? [y/N] ' "$*"
read -r answer || answer=
case $answer in
[yY] | [yY][eE][sS]) exit 0 ;;
esac
exit 1
