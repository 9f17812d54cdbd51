#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# Lockdown, which can only be raised: under `integrity` everything works; under `confidentiality` what is attached can be detached,
# what cannot be attached says why, and what cannot be looked at hides nothing else.
set -eux
mode=/sys/kernel/security/lockdown
mount -t securityfs securityfs /sys/kernel/security
echo integrity >$mode
onramp attach plain
onramp tune plain
onramp flows
onramp detach plain
onramp attach plain --default
# Its listening socket keeps the code, and no program can look for it.
iperf3 -s -D -p 5300
echo confidentiality >$mode
status=0
onramp detach plain || status=$?
[ "$status" = 5 ]
status=0
onramp --json status >/tmp/locked.json || status=$?
[ "$status" = 5 ]
jq -e '(.unreadable | length) == 1 and (.algorithms | length) == 1 and .algorithms[0].older_code == 1' /tmp/locked.json
status=0
said=$(onramp attach plain 2>&1) || status=$?
[ "$status" = 3 ]
case $said in *confidentiality*) ;; *) exit 1 ;; esac
onramp --json doctor | jq -e '[.checks[] | select(.verdict == "missing") | .name] | contains(["lockdown", "congestion controls in BPF"])'
