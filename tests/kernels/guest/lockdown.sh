#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# Lockdown, which can only be raised: under `integrity` everything works; under `confidentiality` what is attached can be detached,
# and what cannot be attached says why.
set -eux
mode=/sys/kernel/security/lockdown
mount -t securityfs securityfs /sys/kernel/security
echo integrity >$mode
onramp attach plain
onramp tune plain
onramp flows
onramp detach plain
onramp attach plain
echo confidentiality >$mode
onramp detach plain
status=0
said=$(onramp attach plain 2>&1) || status=$?
[ "$status" = 3 ]
case $said in *confidentiality*) ;; *) exit 1 ;; esac
onramp --json doctor | jq -e '[.checks[] | select(.verdict == "missing") | .name] | contains(["lockdown", "congestion controls in BPF"])'
