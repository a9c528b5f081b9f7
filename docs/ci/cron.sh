#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# For cron on a machine of its own: measures the running kernel every night and mails what is slower
#   - than the run that is tagged "baseline": the first one, until you tag another by hand, so that a
#     decline of 2% a night is seen in the third;
#   - than the run that is tagged "last-good": the latest that was not slower than the one before.
# In root's crontab:
#   15 2 * * *  /srv/fscale/docs/ci/cron.sh /srv/fscale /srv/results linux-fs@example.org
# Exit code 1: something is slower; 2: it could not be measured or compared. Further arguments are of
# `fscale compare`: with --fail-undecided, 1 is also what could not be decided, as the mail says.
set -eu
repo=$1 results=$2 to=$3
shift 3
fscale=$repo/bin/fscale
run=$results/$(date +%Y-%m-%d)-$(uname -r)
export FSCALE_HISTORY="$results/history.sqlite"

mkdir -p "$results"
# 1: a cell failed, which the comparison says when it did not before.
status=0
"$fscale" run regression --wait 3600 --output "$run" || status=$?
[ "$status" -le 1 ] || exit "$status"
"$fscale" history add "$run"
slower=0
for tag in baseline last-good; do
	if ! reference=$("$fscale" history path "$tag" 2>/dev/null); then
		"$fscale" history tag "$run" "$tag"
		continue
	fi
	status=0
	"$fscale" compare "$reference" "$run" --mail "$run/$tag.txt" --html "$run/$tag.html" \
		"$@" || status=$?
	case $status in
	0) [ "$tag" = baseline ] || "$fscale" history tag "$run" "$tag" ;;
	1)
		slower=1
		found="slower than"
		! grep -q "^fscale could not judge" "$run/$tag.txt" || found="undecided against"
		mail -s "fscale: $found $tag: $(hostname), $(uname -r)" "$to" <"$run/$tag.txt"
		;;
	*) exit "$status" ;;
	esac
done
exit "$slower"
