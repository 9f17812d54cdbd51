#!/usr/bin/env bash
# run.sh ns3|kernel: the rows of ../data/ns3.csv, by ns-3 or by kernel TCP. README.md says more.
set -euo pipefail
cd "$(dirname "$0")"

# Name, rate in bit/s, delay of each direction in microseconds, packets of the queue, bytes.
paths=(
	'short-quarter 25000000 40000 42 10000000'
	'short-half 25000000 40000 83 10000000'
	'short-one 25000000 40000 167 10000000'
	'long-one 50000000 300000 2500 50000000'
)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

by_ns3() {
	local program path rate delay queue bytes control
	program=ns-$(dpkg-query --show --showformat '${source:Upstream-Version}' libns3-dev)
	g++ -std=c++17 -O2 -Wall -Wextra -o "$scratch/transfer" transfer.cc \
		-lns3-applications -lns3-point-to-point -lns3-internet -lns3-network -lns3-core
	for path in "${paths[@]}"; do
		read -r path rate delay queue bytes <<<"$path"
		for control in newreno:1 cubic:1 cubic-hystart:1 newreno:2 linux-reno:2 cubic:2; do
			printf '%s,%s,%s,%s,%s,%s,' "$program" "$path" "$rate" "$delay" "$queue" "$bytes"
			"$scratch/transfer" --rate="$rate" --one-way-us="$delay" --queue="$queue" --bytes="$bytes" \
				--control="${control%:*}" --segments-per-ack="${control#*:}"
		done
	done
}

by_kernel() {
	local path rate delay queue bytes segments quickack
	for path in "${paths[@]}"; do
		read -r path rate delay queue bytes <<<"$path"
		for segments in 1 2; do
			quickack=$([ "$segments" = 1 ] && echo true || echo false)
			cat >"$scratch/$path.toml" <<-PROFILE
				version = 1
				name = "$path"
				about = "a path of the comparison with ns-3"
				algorithm = "plain"
				[link.forward]
				rate_bps = $rate
				delay_us = $delay
				queue_packets = $queue
				[link.return]
				rate_bps = 1_000_000_000
				delay_us = $delay
				queue_bytes = 100_000_000
				[host]
				tcp_rmem = [4_096, 131_072, 268_435_456]
				tcp_wmem = [4_096, 131_072, 268_435_456]
				quickack = $quickack
			PROFILE
			# The sink's clock begins when a word of 53 bytes arrives that the data follow.
			"${ONRAMP:-onramp}" --quiet --json lab compare --profile "$scratch/$path.toml" \
				--arms plain:base=reno,plain --bytes "$bytes" -n 1 -o "$scratch/$path-$segments" |
				jq --raw-output --argjson segments "$segments" --argjson delay "$delay" --argjson rate "$rate" \
					--arg path "$path,$rate,$delay,$queue,$bytes" \
					'(.kernel | sub("[^0-9.].*"; "")) as $kernel | .arms[] |
					(if .arm == "plain" then "cubic" else "reno" end) as $control | .runs[0] | select(.valid) |
					[.seconds + $delay / 1e6 + 53 * 8 / $rate, .exit.seconds | . * 1e6 | round / 1e6] as $seconds |
					"linux-\($kernel),\($path),\($control),\($segments),\($seconds[0]),\(.retransmitted_segments)," +
					"\(.queue_drops),\($seconds[1]),\(.exit.window_bytes / 1448 | floor)"'
		done
	done
}

case ${1:-} in
	ns3) by_ns3 ;;
	kernel) by_kernel ;;
	*)
		echo "usage: run.sh ns3|kernel" >&2
		exit 2
		;;
esac
