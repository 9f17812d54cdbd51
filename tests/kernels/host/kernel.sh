#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# kernel.sh SERIES SUITE PACKAGE CPU ONRAMP WORK RESULTS: fetches one kernel, boots it, and leaves its result lines in
# RESULTS and its console in WORK. A kernel that cannot be fetched leaves a line SKIP with the reason.
set -euo pipefail

series=$1
suite=$2
package=$3
cpu=$4
onramp=$5
work=$6
results=$7
here=$(dirname "$(readlink -f "$0")")
# Of this machine, which others may use as well.
seconds=2400

# Whatever runs is ours to end.
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
run() {
	local status=0
	"$@" &
	child=$!
	wait "$child" || status=$?
	child=
	return "$status"
}

fetched=$work/$suite.fetch
if ! run "$here/fetch.sh" "$suite" "$package" "$work/cache" >"$fetched.path" 2>"$fetched.log"; then
	reason=$(grep -e '^E:' -e '^W:' "$fetched.log" || tail -n 1 "$fetched.log")
	echo "SKIP kernel $series: $suite cannot be fetched: $(head -n 1 <<<"$reason")" | tee "$results"
	exit
fi
kernel=$(cat "$fetched.path")
release=$(cat "$kernel/release")
name=$(grep -o '^[0-9]*\.[0-9]*' <<<"$release")
if [ "$name" != "$series" ]; then
	echo "NOTE $suite has $release, kernels.toml expects $series"
fi

log=$work/$name.log
run "$here/initramfs.sh" "$kernel" "$onramp" "$work/$name.initramfs"
: >"$work/$name.serial"
begin=$SECONDS
status=0
run "$here/boot.sh" "$kernel/vmlinuz" "$work/$name.initramfs" "$cpu" "$name" "$log" "$work/$name.serial" "$seconds" ||
	status=$?

tr -d '\r' <"$work/$name.serial" >"$results"
if ! grep -q "^RESULT $name - end ok" "$results"; then
	why="QEMU ended with $status"
	[ "$status" = 124 ] && why="not done after $seconds s"
	cause=$(grep -a -m 1 -e 'Kernel panic' -e 'Oops' -e 'BUG:' "$log" | tr -d '\r' || true)
	echo "RESULT $name - end fail $why; ${cause:-$(tail -n 1 "$log")}" >>"$results"
fi
echo "kernel $name: $release, $((SECONDS - begin)) s, $log"
