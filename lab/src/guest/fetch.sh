# SPDX-License-Identifier: MIT OR GPL-2.0-only
# shellcheck shell=bash
# fetch.sh SUITE PACKAGE SERIES HOME: leaves in HOME/current the kernel that PACKAGE stands for in Debian's SUITE: `vmlinuz`
# and `modules/`. It comes from the Debian mirror, and is checked with the keys, that this machine itself uses. Exits with
# 4, and prints what the suite has, if that is not of SERIES.
set -euo pipefail

suite=$1
package=$2
series=$3
home=$4

cd "$home"
home=$PWD
# Two at once take turns. The holder of the lock may remove what a killed one left.
exec 9>lock
flock 9
rm -rf staging
mkdir -p staging/{sources,lists/partial,cache/archives/partial,packages,tree,kernel}

# The machine's own source of Debian's main archive: where it is, and the file and entry that say so. Names of
# repositories are free; what the signed Release file says of itself is not.
# shellcheck disable=SC2016 # apt expands these
target=$(apt-get indextargets --format '$(REPO_URI) $(SOURCESENTRY)' \
	'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 'Component: main' | head -n 1)
if [ -z "$target" ]; then
	echo "apt knows no Debian archive: run apt-get update first" >&2
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
{
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nTargets: Packages\n' "$mirror" "$suite"
	if [ -n "$keys" ]; then
		printf '%s\n' "$keys"
	fi
} >staging/sources/debian.sources

# An empty list of installed packages: the candidate is the suite's, whatever this machine runs.
: >staging/status
apt=(-o "Dir::Etc::sourceparts=$home/staging/sources" -o Dir::Etc::sourcelist=/dev/null
	-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
	-o "Dir::State=$home/staging" -o "Dir::State::status=$home/staging/status"
	-o "Dir::State::lists=$home/staging/lists" -o "Dir::Cache=$home/staging/cache"
	-o APT::Architecture=amd64 -o APT::Architectures=amd64
	-o APT::Sandbox::User= -o APT::Update::Error-Mode=any -o Acquire::Languages=none -o Acquire::Retries=2
	-o APT::Update::Post-Invoke-Success= -o APT::Update::Post-Invoke=)
apt-get "${apt[@]}" -qq update >&2

depends() {
	apt-cache "${apt[@]}" depends --important "$1" | sed -n 's/^ *Depends: //p'
}
image=$(depends "$package" | grep '^linux-image-[0-9]')
release=${image#linux-image-}
case $release in
"$series".* | "$series"-* | "$series"+*) ;;
*)
	echo "$release"
	exit 4
	;;
esac
version=$(apt-cache "${apt[@]}" show --no-all-versions "$image" | sed -n 's/^Version: //p')
if [ ! -d "$version" ]; then
	# From 7.x on the image is empty, and these have its parts.
	mapfile -t parts < <(depends "$image" | grep -Fx -e "linux-base-$release" -e "linux-binary-$release" \
		-e "linux-modules-$release")
	(cd staging/packages && apt-get "${apt[@]}" -qq download "$image" "${parts[@]}") >&2
	for file in staging/packages/*.deb; do
		dpkg -x "$file" staging/tree
	done
	mv "$(find staging/tree -type f \( -name vmlinuz -o -name "vmlinuz-$release" \))" staging/kernel/vmlinuz
	mv "$(find staging/tree -type d -path "*/lib/modules/$release")" staging/kernel/modules
	mv -T staging/kernel "$version"
fi
ln -sfn "$version" staging/current
mv -T staging/current current
rm -rf staging
