#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Installs Exim's program for the mail server benchmark, and starts no mail server, now or at boot.
# A mail server that is installed already stays as it is.
set -eu

PACKAGE=exim4-daemon-light
POLICY=/usr/sbin/policy-rc.d # invoke-rc.d(8): 101 forbids

if [ -x /usr/sbin/exim4 ]; then
	exit 0
fi
# shellcheck disable=SC2016 # a format of dpkg-query's
other=$(dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' |
	awk '$1 == "installed" && /mail-transport-agent/ { print $2 }')
if [ -n "$other" ] || [ -e /usr/sbin/sendmail ]; then
	echo "Exim is left out: this machine has a mail server (${other:-/usr/sbin/sendmail})," \
		"which $PACKAGE would replace. The exim benchmark will be skipped." >&2
	exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
	echo "Not root: ask an administrator to run $0"
	exit 0
fi

echo "Debian package to install: $PACKAGE, not started"
agree=$(dirname -- "$0")/../../setup/agree.sh # of a clone, where make calls this
if [ -x "$agree" ]; then
	"$agree" "$PACKAGE" || exit $(($? == 2 ? 2 : 0))
fi
if [ -e "$POLICY" ]; then
	if "$POLICY" exim4 start; then status=0; else status=$?; fi
	if [ "$status" -ne 101 ]; then
		echo "Exim is left out: $POLICY exists and would let its mail server start." \
			"Install $PACKAGE by hand." >&2
		exit 0
	fi
else
	trap 'rm -f "$POLICY"' EXIT
	trap 'exit 3' INT TERM
	printf '#!/bin/sh\nexit 101\n' >"$POLICY"
	chmod 755 "$POLICY"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "$PACKAGE" >/dev/null
update-rc.d exim4 disable
if command -v systemctl >/dev/null; then
	# Masked, so that neither a boot nor an upgrade starts them.
	systemctl mask --quiet exim4.service exim4-base.service exim4-base.timer
fi
