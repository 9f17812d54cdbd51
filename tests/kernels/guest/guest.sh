#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# What is tried on each kernel: once, and then for each algorithm.
cd / || exit
# shellcheck source=SCRIPTDIR/lib.sh
. /lib.sh

echo "$(uname -r), up $(cut -d ' ' -f 1 /proc/uptime) s"
iperf3 -s -D

step - baseline sh /transfer.sh cubic
if step - list sh -c 'onramp list --json >/tmp/list.json && jq -er ".algorithms | map(.name) | join(\" \")" /tmp/list.json'; then
	step - load sh -c 'sh /programs.sh >/tmp/programs && cat /tmp/programs && wc -l </tmp/programs'
	step - doctor onramp doctor
	for algorithm in $(jq -r '.algorithms[].name' /tmp/list.json); do
		sh /algorithm.sh "$algorithm"
	done
	step - detach_all onramp detach --all
fi
# Warnings and worse of the kernel, from whatever was done above.
step - kernel_log sh -c 'dmesg | grep -E "WARNING:|BUG:|Oops|refcount_t|rcu.*stall" && exit 1 || echo quiet'
# The host takes results without this line for a guest that broke off.
result - end ok "after $(cut -d ' ' -f 1 /proc/uptime) s"
