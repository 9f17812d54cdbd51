#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# flows.sh ALGORITHM: an open flow is listed, with what is kept of it. Its client has just been started, and
# has a second connection, which carries next to nothing.

for _ in $(seq 10); do
	# A look takes much longer to compute than this.
	sleep 0.4
	onramp flows --json >/tmp/flows.json || exit
	if jq -er --arg algorithm "$1" 'first(.flows[] | select(.algorithm == $algorithm and .acknowledged_bytes > 1e6 and .slow_starts) |
		"\(.state), cwnd \(.cwnd_segments), \(.acknowledged_bytes) bytes delivered")' /tmp/flows.json; then
		exit
	fi
done
cat /tmp/flows.json
exit 1
