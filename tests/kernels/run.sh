#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# run.sh [--record] [SERIES...]: every onramp object on stock kernels, in guests, and what the verifier and the compiler
# make of it there and, as root, on the running kernel ("host").
#
# ONRAMP_BIN        the binary under test; else target/release/onramp
# CARGO_TARGET_DIR  logs go there, below kernels/; else target/
# --record          write what was measured to programs.tsv instead of comparing it
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
target=${CARGO_TARGET_DIR:-$here/../../target}
onramp=${ONRAMP_BIN:-$target/release/onramp}
programs=(awk cat cut dmesg env false find grep head id iperf3 jq kill mktemp mount rm seq sh sleep tail timeout tr true wc)
# Of this machine, which others may use as well.
seconds=2400

# shellcheck source=tests/options.sh
. "$here/../options.sh"
options --record "$@"
record=$option
wanted=("${words[@]}")
if [ ! -x "$onramp" ]; then
	echo "no onramp binary; build it, or name it in ONRAMP_BIN" >&2
	exit 2
fi

missing=$("$here/../guests/missing.sh" "${programs[@]}")
if [ -n "$missing" ]; then
	echo "SKIP kernels: $missing"
	echo "0 passed, 0 failed, 1 skipped"
	exit
fi

# The newest kernel's verifier does most: it begins first, so that no processor waits for it in the end.
if [ "${#wanted[@]}" = 0 ]; then
	mapfile -t wanted < <("$onramp" --json lab kernel list | jq -r '[.kernels[] | select(.release) | .series] | reverse[]')
	wanted+=(host)
fi

mkdir -p "$target/kernels"
work=$(readlink -f "$target/kernels")
rm -f "$work"/*.results
echo "testing $onramp"

# in_guest SERIES: all steps on one kernel; its log has everything, its results the lines that count.
in_guest() {
	local arguments=(--kernel "$1" --seconds "$seconds" --env "KERNEL=$1") name status=0
	for name in "${programs[@]}"; do arguments+=(--program "$name"); done
	for name in "$here"/guest/*.sh; do arguments+=(--file "$name:/${name##*/}"); done
	"$onramp" lab guest "${arguments[@]}" -- sh /guest.sh >"$work/$1.log" 2>&1 &
	child=$!
	trap 'kill "$child" 2>/dev/null' TERM
	wait "$child" || status=$?
	grep -a -e '^RESULT ' -e '^PROGRAM ' "$work/$1.log" >"$work/$1.results" || true
	if ! grep -q "^RESULT $1 - end ok" "$work/$1.results"; then
		echo "RESULT $1 - end fail status $status: $(tail -n 1 "$work/$1.log")" >>"$work/$1.results"
	fi
}

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
for kernel in "${wanted[@]}"; do
	if [ "$kernel" = host ]; then
		continue
	fi
	if [ "${#children[@]}" -ge "$processors" ]; then
		wait -n || true
	fi
	in_guest "$kernel" &
	children+=("$!")
done

# The running kernel: what it makes of the objects. The rest is done to it by the other tests.
if [[ " ${wanted[*]} " == *" host "* ]]; then
	if [ "$(id -u)" != 0 ]; then
		echo "SKIP kernel host: loading needs root" | tee "$work/host.results"
	elif KERNEL=host ONRAMP=$onramp sh "$here/guest/programs.sh" >"$work/host.results" 2>"$work/host.log"; then
		echo "RESULT host - load ok" >>"$work/host.results"
	else
		echo "RESULT host - load fail $(head -n 2 "$work/host.log" | tr '\n' ' ')" >>"$work/host.results"
	fi
fi
wait
children=()

if [ "$record" ]; then
	awk -v record=1 -f "$here/programs.awk" part=budget "$here/budget.toml" part=recorded "$here/programs.tsv" \
		part=measured "$work"/*.results >"$work/programs.tsv"
	cp "$work/programs.tsv" "$here/programs.tsv"
fi

passed=0
failed=0
skipped=0
for kernel in "${wanted[@]}"; do
	results=$work/$kernel.results
	awk -f "$here/programs.awk" part=budget "$here/budget.toml" part=recorded "$here/programs.tsv" part=measured \
		"$results" >"$work/$kernel.programs"
	cat "$work/$kernel.programs" >>"$results"
	grep -e '^NOTE' -e '^STALE' "$work/$kernel.programs" || true
	well=$(grep -c '^RESULT [^ ]* [^ ]* [^ ]* ok' "$results" || true)
	echo "$kernel: $well steps ok"
	passed=$((passed + well))
	failed=$((failed + $(grep -c '^RESULT [^ ]* [^ ]* [^ ]* fail' "$results" || true)))
	skipped=$((skipped + $(grep -c '^SKIP' "$results" || true)))
done
awk -f "$here/table.awk" "$work"/*.results >"$work/table"
grep '^FAIL' "$work/table" || true
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
