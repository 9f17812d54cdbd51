#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# source.sh SUITE: an apt source for SUITE at the Debian mirror, and with the keys, that this machine itself uses.
set -euo pipefail

suite=$1

# Names of repositories are free; what the signed Release file says of itself is not.
# shellcheck disable=SC2016 # apt expands these
target=$(apt-get indextargets --format '$(REPO_URI) $(SOURCESENTRY)' \
	'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 'Component: main' | head -n 1)
if [ -z "$target" ]; then
	echo "apt knows no Debian archive; has apt-get update run here?" >&2
	exit 1
fi
mirror=${target%% *}
entry=${target#* }
file=${entry%:*}
number=${entry##*:}

# The entry's keys: a file, a list of them, or a key block over several lines.
case $file in
*.sources)
	keys=$(awk -v number="$number" '
		/^#/ { next }
		/^[ \t]*$/ { inside = 0; next }
		!inside { inside = 1; stanza++; copy = 0 }
		/^[^ \t]/ { copy = tolower($0) ~ /^signed-by:/ }
		copy && stanza == number' "$file")
	;;
*)
	keys=$(sed -n "${number}s/.*\[.*signed-by=\([^] ]*\).*\].*/Signed-By: \1/p" "$file" | tr , ' ')
	;;
esac

printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nTargets: Packages\n' "$mirror" "$suite"
if [ -n "$keys" ]; then
	printf '%s\n' "$keys"
fi
