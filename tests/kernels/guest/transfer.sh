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
awk -v control="$control" -v bytes="$bytes" '
	/"sum_(sent|received)":/ { part = $1 }
	/}/ { part = "" }
	part { sum[part $1] = $2 + 0 }
	$1 == "\"sender_tcp_congestion\":" { split($2, quoted, "\""); sender = quoted[2] }
	END {
		sent = sum["\"sum_sent\":\"bytes\":"]
		received = sum["\"sum_received\":\"bytes\":"]
		printf "%s: %.0f bytes sent, %.0f received, %d retransmissions, %d Mb/s\n", sender, sent, received,
			sum["\"sum_sent\":\"retransmits\":"], sum["\"sum_sent\":\"bits_per_second\":"] / 1e6
		if (sender != control || sent < bytes || received < bytes / 2) {
			print "another control, or too little"
			exit 1
		}
	}' /tmp/transfer.json
