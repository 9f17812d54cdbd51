#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# initramfs.sh KERNEL ONRAMP OUT: the file system of the guest, as a compressed cpio archive.
set -euo pipefail

kernel=$1
onramp=$2
out=$3
here=$(dirname "$(readlink -f "$0")")

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,dev,proc,sys,tmp,modules,usr}

# A program with its interpreter and shared libraries, where it will look for them.
install_program() {
	local library
	cp -L "$1" "$root/bin/$2"
	for library in $(ldd "$1" 2>/dev/null | grep -o '/[^ ]*'); do
		mkdir -p "$root$(dirname "$library")"
		cp -L "$library" "$root$library"
	done
}

install_program "$(command -v busybox)" busybox
install_program "$(command -v iperf3)" iperf3
install_program "$(command -v jq)" jq
install_program "$onramp" onramp
# Debug information is most of a program and nobody reads it in there.
if command -v strip >/dev/null && head -c 4 "$onramp" | grep -q ELF; then
	strip --strip-debug "$root/bin/onramp"
fi

# Sockets are listed through tcp_diag.
"$here/modules.sh" "$kernel" "$root/modules" tcp_diag veth tun
cp "$here"/../guest/* "$root/"

(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$out.new"
mv "$out.new" "$out"
