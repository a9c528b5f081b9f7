#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# For cron on a machine that builds: two kernel trees, compared every night on one test machine, which
# boots both in turn. Mails the verdict, and keeps JUnit, page and history.
#   30 1 * * *  /srv/fscale/docs/ci/two-kernels.sh /srv/fscale /srv/linux-base /srv/linux-new testbox \
#               /srv/results linux-fs@example.org --reset-command 'ipmitool -H bmc -f FILE power reset'
# Each tree has the .config of the test machine, with another CONFIG_LOCALVERSION than its own kernel.
# The new one is pulled; the other is yours to move. Further arguments are of `fscale ab`.
# Exit code 1: something is slower or broken; 2: it could not be measured; 3: it was interrupted.
set -eu
repo=$1 base=$2 new=$3 host=$4 results=$5 to=$6
shift 6
fscale=$repo/bin/fscale
export FSCALE_HISTORY="$results/history.sqlite"

git -C "$new" pull -q --ff-only
for tree in "$base" "$new"; do
	make -C "$tree" -s -j"$(nproc)" olddefconfig bzImage modules
done
run=$results/$(date +%Y-%m-%d)-$(git -C "$new" rev-parse --short=12 HEAD)
mkdir -p "$run"
status=0
"$fscale" ab --base "kernel:$base" --new "kernel:$new" --suite regression --fs ext4,xfs \
	--on "ssh:$host" --max-minutes 360 --output "$run/run" --junit "$run/fscale.xml" \
	--mail "$run/verdict.txt" --html "$run/page.html" "$@" >"$run/log.txt" 2>&1 || status=$?
text=$run/verdict.txt
[ -e "$text" ] || text=$run/log.txt
case $status in
0) found="nothing is slower" ;;
1) found="slower or broken" ;;
*) found="not measured" ;;
esac
mail -s "fscale: $found: $(basename "$new") on $host" "$to" <"$text"
[ "$status" -gt 1 ] || [ ! -e "$run/run/run.json" ] || "$fscale" history add "$run/run"
exit "$status"
