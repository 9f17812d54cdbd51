#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# modules.sh KERNEL OUT NAME...: puts the modules NAME, and what they need, decompressed into OUT, and their order into
# OUT/order. A module that the kernel has built in is left out.
set -euo pipefail

kernel=$1
out=$2
shift 2

mkdir -p "$out"
: >"$out/order"

add() {
	local name=$1 file need
	if [ -e "$out/$name.ko" ] || grep -q "/${name//[-_]/[-_]}\.ko\$" "$kernel/modules/modules.builtin"; then
		return
	fi
	file=$(find "$kernel/modules/kernel" -name "${name//[-_]/[-_]}.ko*")
	case $file in
	*.ko) cp "$file" "$out/$name.ko" ;;
	*.ko.xz) xz -dc "$file" >"$out/$name.ko" ;;
	*.ko.zst) zstd -qdc "$file" >"$out/$name.ko" ;;
	*)
		echo "$kernel has no module $name" >&2
		return 1
		;;
	esac
	for need in $(tr '\0' '\n' <"$out/$name.ko" | sed -n 's/^depends=//p' | tr , ' '); do
		add "$need"
	done
	echo "$name" >>"$out/order"
}

for name in "$@"; do
	add "$name"
done
