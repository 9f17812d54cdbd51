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

list=$(awk -f "$here/host/list.awk" "$here/kernels.toml")
mapfile -t kernels < <(awk -F '\t' -v wanted=" ${wanted[*]} " \
	'wanted == "  " || index(wanted, " " $1 " ")' <<<"$list")
if [ "${#kernels[@]}" = 0 ]; then
	echo "no kernel ${wanted[*]} in $here/kernels.toml" >&2
	exit 2
fi

missing=$("$here/host/missing.sh")
if [ -n "$missing" ]; then
	echo "SKIP kernels: $missing"
	echo "0 passed, 0 failed, ${#kernels[@]} skipped"
	exit
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

mkdir -p "$target/kernels"
work=$(readlink -f "$target/kernels")
rm -f "$work"/*.results
echo "testing $onramp"

children=()
# shellcheck disable=SC2317 # called by the trap
end_children() {
	for child in "${children[@]}"; do
		kill "$child" 2>/dev/null || true
	done
	wait
}
trap end_children EXIT
trap 'exit 130' INT TERM

# An emulated machine takes one processor.
processors=$(nproc)
for kernel in "${kernels[@]}"; do
	if [ "${#children[@]}" -ge "$processors" ]; then
		wait -n || true
	fi
	IFS=$'\t' read -r series suite package cpu allowed <<<"$kernel"
	"$here/host/kernel.sh" "$series" "$suite" "$package" "$cpu" "$onramp" "$work" "$work/$series.results" &
	children+=("$!")
done

wait
children=()

passed=0
failed=0
skipped=0
for kernel in "${kernels[@]}"; do
	IFS=$'\t' read -r series suite package cpu allowed <<<"$kernel"
	results=$work/$series.results
	if [ ! -s "$results" ]; then
		echo "RESULT $series - host fail it broke off" >"$results"
	fi
	good=$(grep -c '^RESULT [^ ]* [^ ]* [^ ]* ok' "$results" || true)
	bad=$(grep -c '^RESULT [^ ]* [^ ]* [^ ]* fail' "$results" || true)
	skipped=$((skipped + $(grep -c '^SKIP' "$results" || true)))
	passed=$((passed + good))
	if [ "$bad" -gt 0 ] && [ "$allowed" != - ]; then
		echo "SKIP $bad failed steps of $series, which may fail: $allowed"
		skipped=$((skipped + bad))
	else
		failed=$((failed + bad))
	fi
done
awk -f "$here/host/table.awk" "$work"/*.results
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
