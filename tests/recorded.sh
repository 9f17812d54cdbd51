#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# recorded.sh ONRAMP_LAB [--kernel] [PART...]: arms over parts of a recorded link (profiles/recorded), a minute each, which begin
# two minutes apart: simulated, or with kernel TCP in guests. Prints CSV; docs/evaluation/recorded.csv is all of the one and parts
# 0, 5, 10 … 35 of the other.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
lab=$(realpath "$1")
shift
compare=(sim compare)
sizes=(500k 2M 10M 50M)
if [ "${1:-}" = --kernel ]; then
	shift
	compare=(compare)
	sizes=(10M)
fi
parts=("$@")
if [ "${#parts[@]}" = 0 ]; then
	mapfile -t parts < <(seq 0 39)
fi
name=starlink-driving
recording=$here/../profiles/recorded/$name
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

cd "$work"
echo "clock,part,bytes,arm,seconds,retransmitted_segments,digest"
for part in "${parts[@]}"; do
	awk -F, -v first="$((120 * part))" -v CONVFMT=%.0f -v OFMT=%.0f '
		NR == 1 { print; next }
		$1 >= first * 1e6 && $1 < (first + 60) * 1e6 { print $1 - first * 1e6 "," $2 }' "$recording.csv" >"$name.csv"
	mean=$(awk -F, 'NR > 1 { sum += $2 } END { printf "%.0f", sum / (NR - 1) }' "$name.csv")
	# The queue is that of the whole recording.
	awk -v mean="$mean" '
		/^\[/ { section = $0 }
		section == "[link.forward]" && /^rate_bps/ { $0 = "rate_bps = " mean }
		/^repeat_us/ { $0 = "repeat_us = 60_000_000" }
		{ print }' "$recording.toml" >"$name.toml"
	for size in "${sizes[@]}"; do
		"$lab" --json "${compare[@]}" --profile "./$name.toml" --arms cubic,bbr,ramp --bytes "$size" -n 1 >said
		jq -r --arg part "$part" '. as $all | .arms[] | select(.valid_runs == 1) | [$all.clock, $part, $all.bytes, .arm,
			.seconds.mean, .retransmitted_segments.mean, ((.runs[0].digest // "") | sub("^sha256:"; ""))[:16]] | @csv' said | tr -d '"'
	done
done
