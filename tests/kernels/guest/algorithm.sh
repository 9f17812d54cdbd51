#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# algorithm.sh ALGORITHM CONTROL SETTING: its life from attach to detach, the second half of it under a running flow.
cd / || exit
# shellcheck source=SCRIPTDIR/lib.sh
. /lib.sh

algorithm=$1
control=$2
available=/proc/sys/net/ipv4/tcp_available_congestion_control

# On Reno, which is the base where CUBIC's functions are not to be had.
if step "$algorithm" attach_reno onramp attach "$algorithm" --base reno; then
	step "$algorithm" transfer_reno sh /transfer.sh "$control"
	step "$algorithm" detach_reno onramp detach "$algorithm"
fi

# On BBR, whose operations are others. What bounds the window after slow start, too, is refused.
if [ "$algorithm" = inflight ]; then
	step "$algorithm" no_bbr sh -c 'onramp attach inflight --base bbr 2>&1 | grep "cannot have base bbr"'
elif step "$algorithm" attach_bbr onramp attach "$algorithm" --base bbr; then
	step "$algorithm" transfer_bbr sh /transfer.sh "$control"
	step "$algorithm" detach_bbr onramp detach "$algorithm"
	step "$algorithm" gone_bbr sh /gone.sh "$control"
fi

step "$algorithm" attach onramp attach "$algorithm" || exit
step "$algorithm" registered grep -w "$control" "$available"
step "$algorithm" transfer sh /transfer.sh "$control"
step "$algorithm" status sh /status.sh "$algorithm"
# CUBIC's functions are there in all kernels of the matrix: Reno would be a silent fallback.
step "$algorithm" base grep -o '^base cubic' /tmp/status

iperf3 -c 127.0.0.1 -C "$control" -t 60 -b 50M >/tmp/client.out 2>&1 &
client=$!
step "$algorithm" flows sh /flows.sh "$algorithm"
step "$algorithm" tune sh /tune.sh "$algorithm" "$3"
step "$algorithm" detach onramp detach "$algorithm"
step "$algorithm" gone sh /gone.sh "$control"
# The flow goes on, on another control, and nothing runs the code any more.
step "$algorithm" moved sh -c "kill -0 $client && onramp status --json | grep -o '^{\"schema\":[0-9]*,\"algorithms\":\[\]'"
kill "$client"
wait "$client"
