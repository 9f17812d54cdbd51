#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# boot.sh VMLINUZ INITRAMFS CPU NAME LOG RESULTS SECONDS: boots a kernel by software emulation and waits until it
# has powered off. Its console goes to LOG, its second serial line to RESULTS.
set -euo pipefail

vmlinuz=$1
initramfs=$2
cpu=$3
name=$4
log=$5
results=$6
seconds=$7

# thread=single: with a thread per processor one of them may still see the int3 of a jump label that is patched already,
# which crashes kernels that are well (QEMU 7.2). With one thread in all it is no slower.
# panic=-1 with -no-reboot: a panic ends QEMU at once.
# shellcheck disable=SC2054 # the comma is QEMU's
qemu=(qemu-system-x86_64 -accel tcg,thread=single -cpu "$cpu" -smp 2 -m 768 -nodefaults -no-user-config -display none
	-no-reboot -serial "file:$log" -serial "file:$results" -kernel "$vmlinuz" -initrd "$initramfs"
	-append "console=ttyS0 quiet loglevel=4 panic=-1 oops=panic onramp.kernel=$name")

timeout --kill-after=5 "$seconds" "${qemu[@]}" </dev/null &
pid=$!
trap 'kill "$pid" 2>/dev/null || true; wait "$pid" || true' EXIT
trap 'exit 130' INT TERM
wait "$pid"
