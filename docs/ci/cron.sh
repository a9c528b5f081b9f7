#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# For cron on a machine of its own: measure the running kernel every night, compare it with the run
# that is tagged "good", and mail what is slower. In root's crontab:
#   15 2 * * *  /srv/fscale/repo/docs/ci/cron.sh /srv/fscale/repo /srv/fscale/results linux-fs@example.org
set -eu
repo=$1 results=$2 to=$3
run=$results/$(date +%Y-%m-%d)-$(uname -r)
export FSCALE_HISTORY="$results/history.sqlite"
fscale=$repo/bin/fscale

"$fscale" run quick --repeat 12 --wait 3600 --output "$run"
"$fscale" history add "$run"
if ! "$fscale" history list | grep -qw good; then
	"$fscale" history tag "$run" good
	exit 0
fi
status=0
"$fscale" compare good "$run" --mail "$run/compare.txt" --html "$run/compare.html" || status=$?
case $status in
0) "$fscale" history tag "$run" good ;;
1) mail -s "fscale: regression on $(hostname), $(uname -r)" "$to" <"$run/compare.txt" ;;
*) exit "$status" ;;
esac
