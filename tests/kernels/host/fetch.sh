#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# fetch.sh SUITE PACKAGE CACHE: prints the directory of the kernel that PACKAGE stands for in SUITE. It has `vmlinuz`,
# `release` and `modules/`. What is in CACHE is used as it is; with REFRESH=1 the archive is asked again.
set -euo pipefail

suite=$1
package=$2
cache=$3
here=$(dirname "$(readlink -f "$0")")
home=$cache/$suite

mkdir -p "$home"
cd "$home"
home=$PWD
# Two runs at once take turns. Whoever holds the lock may remove what a killed one left.
exec 9>lock
flock 9
rm -rf staging

if [ -e current ] && [ "${REFRESH:-0}" = 0 ]; then
	readlink -f current
	exit
fi

mkdir -p staging/{sources,lists/partial,cache/archives/partial,packages,tree}
"$here/source.sh" "$suite" >staging/sources/debian.sources
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
version=$(apt-cache "${apt[@]}" show --no-all-versions "$image" | sed -n 's/^Version: //p')
if [ ! -d "$version" ]; then
	# From 7.x on the image is empty, and these have its parts.
	mapfile -t parts < <(depends "$image" | grep -Fx -e "linux-base-$release" -e "linux-binary-$release" \
		-e "linux-modules-$release")
	echo "$suite: fetching $release" >&2
	(cd staging/packages && apt-get "${apt[@]}" -qq download "$image" "${parts[@]}") >&2
	for file in staging/packages/*.deb; do
		dpkg -x "$file" staging/tree
	done
	mkdir staging/kernel
	mv "$(find staging/tree -type f \( -name vmlinuz -o -name "vmlinuz-$release" \))" staging/kernel/vmlinuz
	mv "$(find staging/tree -type d -path "*/lib/modules/$release")" staging/kernel/modules
	echo "$release" >staging/kernel/release
	mv -T staging/kernel "$version"
fi
ln -sfn "$version" staging/current
mv -T staging/current current
rm -rf staging
readlink -f current
