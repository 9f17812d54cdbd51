#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# run.sh [--refresh] [SERIES...]: every onramp object on stock Debian kernels, in QEMU by software emulation.
#
# ONRAMP_BIN        the binary under test; else the newer of target/release/onramp and target/debug/onramp
# CARGO_TARGET_DIR  where kernels are kept and logs go, below kernels/; else target/
# --refresh         ask the archive for newer kernels instead of using those kept
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
target=${CARGO_TARGET_DIR:-$here/../../target}
work=$target/kernels
seconds=180

wanted=()
for argument in "$@"; do
	case $argument in
	--refresh) export REFRESH=1 ;;
	-*)
		sed -n 's/^# \{0,1\}//; 3,7p' "$0"
		exit 2
		;;
	*) wanted+=("$argument") ;;
	esac
done

kernels=$(awk -f "$here/host/list.awk" "$here/kernels.toml")
if [ "${#wanted[@]}" -gt 0 ]; then
	kernels=$(awk -F '\t' -v wanted=" ${wanted[*]} " 'index(wanted, " " $1 " ")' <<<"$kernels")
fi
if [ -z "$kernels" ]; then
	echo "kernels.toml has no kernel ${wanted[*]}" >&2
	exit 2
fi

passed=0
failed=0
skipped=0
finish() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
	exit
}
skip_all() {
	echo "SKIP kernels: $1"
	skipped=$(wc -l <<<"$kernels")
	finish
}

missing=$("$here/host/missing.sh")
if [ -n "$missing" ]; then
	skip_all "$missing"
fi

onramp=${ONRAMP_BIN:-}
if [ -z "$onramp" ]; then
	for candidate in "$target/release/onramp" "$target/debug/onramp"; do
		if [ -x "$candidate" ] && { [ -z "$onramp" ] || [ "$candidate" -nt "$onramp" ]; }; then
			onramp=$candidate
		fi
	done
fi
if [ ! -x "$onramp" ]; then
	echo "no onramp binary; build it, or name it in ONRAMP_BIN" >&2
	exit 2
fi

mkdir -p "$work"
work=$(readlink -f "$work")
all=$work/results
: >"$all"
echo "testing $onramp"

# The child is ours to end, and it ends QEMU.
child=
# shellcheck disable=SC2317 # called by the trap
end_child() {
	if [ -n "$child" ]; then
		kill "$child" 2>/dev/null || true
		wait "$child" || true
	fi
}
trap end_child EXIT
trap 'exit 130' INT TERM

while IFS=$'\t' read -r series suite package cpu allowed; do
	if ! kernel=$("$here/host/fetch.sh" "$suite" "$package" "$work/cache" 2>"$work/$suite.fetch.log"); then
		echo "SKIP kernel $series: $suite cannot be fetched: $(grep -v '^$' "$work/$suite.fetch.log" | tail -n 1)"
		skipped=$((skipped + 1))
		continue
	fi
	release=$(cat "$kernel/release")
	case $release in
	"$series".*) ;;
	*) echo "NOTE $suite has $release, kernels.toml expects $series" ;;
	esac
	name=$(grep -o '^[0-9]*\.[0-9]*' <<<"$release")

	begin=$SECONDS
	"$here/host/initramfs.sh" "$kernel" "$onramp" "$work/$name.initramfs"
	: >"$work/$name.results"
	"$here/host/boot.sh" "$kernel/vmlinuz" "$work/$name.initramfs" "$cpu" "$name" \
		"$work/$name.log" "$work/$name.results" "$seconds" &
	child=$!
	status=0
	wait "$child" || status=$?
	child=

	results=$(tr -d '\r' <"$work/$name.results")
	if ! grep -q "^RESULT $name - end ok" <<<"$results"; then
		why="QEMU ended with $status"
		[ "$status" = 124 ] && why="not done after $seconds s"
		results+=$'\n'"RESULT $name - end fail $why"
		tail -n 5 "$work/$name.log"
	fi
	good=$(grep -c '^RESULT [^ ]* [^ ]* [^ ]* ok' <<<"$results" || true)
	bad=$(grep -c '^RESULT [^ ]* [^ ]* [^ ]* fail' <<<"$results" || true)
	echo "kernel $name: $release, $good of $((good + bad)) steps in $((SECONDS - begin)) s, $work/$name.log"
	printf '%s\n' "$results" >>"$all"
	passed=$((passed + good))
	if [ "$bad" -gt 0 ] && [ "$allowed" != - ]; then
		echo "SKIP $bad failed steps of $name are allowed: $allowed"
		skipped=$((skipped + bad))
	else
		failed=$((failed + bad))
	fi
done <<<"$kernels"

awk -f "$here/host/table.awk" "$all"
finish
