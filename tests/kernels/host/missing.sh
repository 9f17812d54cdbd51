#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# missing.sh: why kernels cannot be booted here, and the command that would change that; nothing if they can.
set -euo pipefail

if [ "$(uname -m)" != x86_64 ]; then
	echo "the kernels are for x86_64, this machine is $(uname -m)"
	exit
fi

# Command and the Debian package that has it.
packages=()
need() {
	if ! command -v "$1" >/dev/null; then
		packages+=("$2")
	fi
}
need qemu-system-x86_64 qemu-system-x86
need cpio cpio
need iperf3 iperf3
need jq jq
need xz xz-utils
need zstd zstd
need busybox busybox-static
if ldd "$(command -v busybox)" >/dev/null 2>&1; then
	packages+=(busybox-static)
fi
if ! command -v apt-get >/dev/null; then
	echo "kernels come from a Debian archive by apt-get, which is not here"
elif [ "${#packages[@]}" -gt 0 ]; then
	echo "missing: apt-get install ${packages[*]}"
fi
