#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# transfer.sh CONTROL [COMMAND...]: 20 MiB over loopback, sent by CONTROL, which COMMAND chooses or else iperf3 itself.

control=$1
shift
bytes=20971520

[ "$#" -gt 0 ] || chosen="-C $control"
for attempt in 1 2 3 4 5; do
	# shellcheck disable=SC2086 # two words or none
	if "$@" iperf3 -J -c 127.0.0.1 $chosen -n "$bytes" >/tmp/transfer.json; then
		break
	fi
	# The server takes one client at a time and may not be done with the last one, or not listen yet.
	cat /tmp/transfer.json >&2
	[ "$attempt" = 5 ] && exit 1
	sleep 1
done

# With -n iperf3's server stops counting when the client says so, with megabytes still in its socket.
jq -er --arg control "$control" --argjson bytes "$bytes" '.end | "\(.sender_tcp_congestion): \(.sum_sent.bytes) bytes sent, " +
	"\(.sum_received.bytes) received, \(.sum_sent.retransmits) retransmissions, \(.sum_sent.bits_per_second / 1e6 | floor) Mb/s",
	(select(.sender_tcp_congestion != $control or .sum_sent.bytes < $bytes or .sum_received.bytes < $bytes / 2) |
		error("another control, or too little"))' /tmp/transfer.json
