#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# receivers.sh ONRAMP: measures anew what the kernels of `onramp lab kernel list` offer as receivers over 150 Mb/s and 600 ms,
# stock and with a raised initial buffer, and prints docs/evaluation/receivers.csv.
set -euo pipefail
onramp=$(readlink -f "$1")
echo "kernel,release,setting,round,window_bytes,read_bytes,buffer_bytes,seconds_1mb,seconds_5mb,digest"
"$onramp" --json lab kernel list | jq -r '.kernels[] | select(.release) | "\(.series) \(.release)"' | while read -r series release; do
	report=$("$onramp" lab guest --kernel "$series" -- onramp --json doctor --receiver --rate 150mbit --rtt 600ms </dev/null 2>/dev/null)
	digest=sha256:$(printf '%s' "$report" | sha256sum | cut -d ' ' -f 1)
	printf '%s' "$report" | jq -r --arg series "$series" --arg release "$release" --arg digest "$digest" '
		def rounded: . * 1000 | round / 1000;
		("now", "raised") as $setting | .[$setting] | [.transfers[].seconds | rounded] as $seconds
		| (["syn", .syn_window_bytes, "", ""], ["first", .first_window_bytes, "", ""],
			(.rounds | to_entries[] | [.key, .value.window_bytes, .value.read_bytes, .value.buffer_bytes])) as $row
		| [$series, $release, $setting] + $row + $seconds + [$digest] | join(",")'
done
