#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# gone.sh CONTROL: it is not registered, and no pin is left of any.

! grep -w "$1" /proc/sys/net/ipv4/tcp_available_congestion_control &&
	! find /sys/fs/bpf/onramp 2>/dev/null | grep .
