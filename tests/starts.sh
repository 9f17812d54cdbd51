#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# starts.sh ONRAMP_LAB [--kernel] [SEED...]: starts of onramp's and published ones (lab/examples) over the first PATHS paths of
# populations of these seeds that suit a guest: simulated, or with kernel TCP in guests. Prints CSV;
# docs/evaluation/start-comparison.csv is all of both: of 12 paths of each seed, and of one, which is what two processors make in an hour.
#
# CASES      those that are measured, separated by blanks [default: all]
#            first: nothing is remembered; second: after 2 MB; neighbour: beside CUBIC that began five seconds before;
#            stale: a memory of four times the rate; prefix: of a path of four times the rate and three times the RTT;
#            parallel: eight connections at once, seconds of the last
# SIZES      of first and second [default: 500k 2M]; receivers are stock, or opened: its buffer is 25 MB from the start
# PATHS      paths of each seed [default: 12; with --kernel 1]
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
lab=$(realpath "$1")
shift
# shellcheck source=tests/options.sh
. "$here/options.sh"
options --kernel "$@"
compare=(sim compare)
if [ -n "$option" ]; then
	compare=(compare)
fi
paths=${PATHS:-$([ -n "$option" ] && echo 1 || echo 12)}
seeds=("${words[@]}")
if [ "${#seeds[@]}" = 0 ]; then
	mapfile -t seeds < <(seq 99921 99927)
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work"
for header in "$here"/../lab/examples/*_test.c; do
	name=$(basename "$header" _test.c)
	"$lab" --quiet build "$here/../lab/examples/$name.h" -o "./$name.o" >/dev/null
done
published=hystart:start=suss,./stopeg.o,./afstart.o,./flash.o
first=cubic,ramp:start=double,ramp:start=fast,ramp:start=suss,$published
memory=ramp:start=resume,ramp:start=resume+window

# measure CASE RECEIVER BYTES ARMS OPTION...: the runs of these arms over the path, as rows.
measure() {
	local status=0
	if [[ " ${CASES:-$1} " != *" $1 "* ]]; then
		return
	fi
	"$lab" --quiet --json "${compare[@]}" --profile "./$2.toml" --bytes "$3" --arms "$4" --seed "$seed" -n 1 "${@:5}" >said 2>err || status=$?
	if [ "$status" != 0 ] && [ "$status" != 5 ]; then
		cat err >&2
		return 1
	fi
	jq -r --arg case "$1" --arg receiver "$2" '. as $all | .arms[] | select(.valid_runs == 1) | .runs[0] as $run |
		def digits($count): if . == null then "" else . * pow(10; $count) | round / pow(10; $count) end;
		[$all.clock, $case, $all.profile, $all.seed, $all.bytes, $receiver, (.arm | sub("^scubic:.*"; "scubic") | sub(":resume=.*"; ":resume")),
			($run.seconds | digits(3)), $run.retransmitted_segments,
			(($run.mean_rtt_us // $all.base_rtt_us) - $all.base_rtt_us | [., 0] | max / 1000 | digits(1)),
			($run.competitor | if . == null then null else .goodput_bps * 100 / .goodput_before_bps end | digits(1)),
			(($run.digest // "") | sub("^sha256:"; ""))[:16]] | @csv' said | tr -d '"'
}

# value SECTION KEY: of the path's profile; 0 if it is not there. rate PART: of the link, bit/s.
value() {
	awk -v section="[$1]" -v key="$2" '/^\[/ { within = $0 == section } within && $1 == key { found = $3 } END { print found == "" ? 0 : found }' stock.toml
}
rate() {
	value "link.$1" rate_bps
}

# scubic RATE RTT: the arm that remembers this, kbit/s and us; what leaves before the first ACK is learned.
scubic() {
	echo "./scubic.o:start=window:rate_kbps=$1:rtt_us=$2"
}

# all: what is measured over the path in stock.toml.
all() {
	local receiver bytes kbps rtt
	# What the traffic of others leaves.
	kbps=$((($(rate forward) - $(rate forward.cross)) / 1000))
	rtt=$(($(value link.forward delay_us) + $(value link.return delay_us)))
	for receiver in stock opened; do
		for bytes in ${SIZES:-500k 2M}; do
			measure first "$receiver" "$bytes" "$first"
			measure second "$receiver" "$bytes" "$memory,$(scubic "$kbps" "$rtt")" --warm 2M
		done
	done
	measure neighbour stock 2M "$first,$memory,$(scubic "$kbps" "$rtt")" --warm 2M --competitor cubic --lead 5
	measure stale opened 2M "cubic,ramp:start=double,ramp:resume=$((4 * kbps))kbit/${rtt}us,$(scubic $((4 * kbps)) "$rtt")" --warm 2M
	measure prefix opened 2M "cubic,ramp:start=double,ramp:resume=$((4 * kbps))kbit/$((3 * rtt))us,$(scubic $((4 * kbps)) $((3 * rtt)))" --warm 2M
	measure parallel opened 500k "cubic,ramp:start=double,ramp:start=resume+window,$(scubic "$kbps" "$rtt")" --warm 2M --flows 8
}

echo "clock,case,path,seed,bytes,receiver,arm,seconds,retransmitted_segments,queueing_ms,neighbour_keeps_percent,digest"
for population in "${seeds[@]}"; do
	made=0
	for ((number = 0; made < paths; number++)); do
		"$lab" --quiet sim sweep --seed "$population" --path "$number" --arms plain --write-profile stock.toml >/dev/null 2>&1
		# Guests keep up with 500 Mb/s.
		if [ "$(rate forward)" -gt 500000000 ]; then
			continue
		fi
		made=$((made + 1))
		seed=$((population + number))
		sed 's/^tcp_rmem = .*/tcp_rmem = [4096, 26214400, 26214400]/' stock.toml >opened.toml
		all
	done
done
