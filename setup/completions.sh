#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Writes what bash, zsh and fish complete `fscale` with below a directory like /usr/share, by a Python
# that finds fscale in a directory: completions.sh SHARE PYTHON DIRECTORY
set -eu
share=$1 python=$2 directory=$3

# The script for a shell, into the directory and file where that looks for it.
write() {
	mkdir -p "$share/$2"
	PYTHONPATH=$directory _FSCALE_COMPLETE=source_$1 "$python" -B -P -m fscale |
		sed '/./,$!d' >"$share/$2/$3" # zsh reads the first line only, where it seeks #compdef
}

write bash bash-completion/completions fscale
write zsh zsh/vendor-completions _fscale
write fish fish/vendor_completions.d fscale.fish
# zsh runs the file at the first TAB, and wants an answer from it.
echo '_fscale_completion "$@"' >>"$share/zsh/vendor-completions/_fscale"
