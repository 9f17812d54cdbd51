#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# What is tried on each kernel: once, and then for each algorithm. Starting jq takes as long as six commands of onramp: a step
# starts one at most.
cd / || exit
# shellcheck source=SCRIPTDIR/lib.sh
. /lib.sh

echo "$(uname -r), up $(cut -d ' ' -f 1 /proc/uptime) s"
iperf3 -s -D

step - baseline sh /transfer.sh cubic
if step - list sh /list.sh; then
	step - load sh -c 'sh /programs.sh >/tmp/programs && cat /tmp/programs && wc -l </tmp/programs'
	step - doctor onramp doctor
	while read -r algorithm control setting; do
		sh /algorithm.sh "$algorithm" "$control" "$setting" </dev/null
	done </tmp/algorithms
	# For one command, whose sockets a cgroup program puts on it: the program is the same whatever the algorithm.
	read -r algorithm control setting </tmp/algorithms
	step "$algorithm" run sh /transfer.sh "$control" onramp run "$algorithm" -- &&
		step "$algorithm" run_gone sh /gone.sh "$control"
	step - detach_all onramp detach --all
	step - lockdown sh /lockdown.sh
fi
# Warnings and worse of the kernel, from whatever was done above.
step - kernel_log sh -c 'dmesg | grep -E "WARNING:|BUG:|Oops|refcount_t|rcu.*stall" && exit 1 || echo quiet'
# The host takes results without this line for a guest that broke off.
result - end ok "after $(cut -d ' ' -f 1 /proc/uptime) s"
