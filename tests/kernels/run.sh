#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# run.sh [--refresh] [--record] [SERIES...]: every onramp object on stock Debian kernels, in QEMU by software emulation,
# and what the verifier and the compiler make of it there and, as root, on the running kernel ("host").
#
# ONRAMP_BIN        the binary under test; else the newer of target/release/onramp and target/debug/onramp
# CARGO_TARGET_DIR  where kernels are kept and logs go, below kernels/; else target/
# --refresh         ask the archive for newer kernels instead of using those kept
# --record          write what was measured to programs.tsv instead of comparing it
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
target=${CARGO_TARGET_DIR:-$here/../../target}

wanted=()
record=
for argument in "$@"; do
	case $argument in
	--refresh) export REFRESH=1 ;;
	--record) record=1 ;;
	-*)
		sed -n 's/^# \{0,1\}//; 3,9p' "$0"
		exit 2
		;;
	*) wanted+=("$argument") ;;
	esac
done

list=$(awk -f "$here/host/list.awk" "$here/kernels.toml")
mapfile -t kernels < <(awk -F '\t' -v wanted=" ${wanted[*]} " \
	'wanted == "  " || index(wanted, " " $1 " ")' <<<"$list")
host=
if [ "${#wanted[@]}" = 0 ] || [[ " ${wanted[*]} " == *" host "* ]]; then
	host=host
fi
if [ "${#kernels[@]}" = 0 ] && [ -z "$host" ]; then
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

# The running kernel: what it makes of the objects. The rest is done to it by the other tests.
if [ "$host" ] && [ "$(id -u)" = 0 ]; then
	if KERNEL=host ONRAMP=$onramp sh "$here/guest/programs.sh" >"$work/host.results" 2>"$work/host.log"; then
		echo "RESULT host - load ok" >>"$work/host.results"
	else
		echo "RESULT host - load fail $(head -n 2 "$work/host.log" | tr '\n' ' ')" >>"$work/host.results"
	fi
elif [ "$host" ]; then
	echo "SKIP kernel host: loading needs root" | tee "$work/host.results"
fi
wait
children=()

if [ "$record" ]; then
	awk -v record=1 -f "$here/host/programs.awk" part=budget "$here/budget.toml" part=recorded "$here/programs.tsv" \
		part=measured "$work"/*.results >"$work/programs.tsv"
	cp "$work/programs.tsv" "$here/programs.tsv"
fi

passed=0
failed=0
skipped=0
for kernel in "${kernels[@]}" ${host:+"host"$'\t-\t-\t-\t-'}; do
	IFS=$'\t' read -r series suite package cpu allowed <<<"$kernel"
	results=$work/$series.results
	if [ ! -s "$results" ]; then
		echo "RESULT $series - host fail it broke off" >"$results"
	fi
	awk -f "$here/host/programs.awk" part=budget "$here/budget.toml" part=recorded "$here/programs.tsv" part=measured \
		"$results" >"$work/$series.programs"
	cat "$work/$series.programs" >>"$results"
	grep -e '^NOTE' -e '^STALE' "$work/$series.programs" || true
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
