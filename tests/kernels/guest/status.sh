#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# status.sh ALGORITHM: after a transfer its flows have been counted, and it was called with ACKs of those that had state. The line is kept in
# /tmp/status.
set -e

onramp status --json >/tmp/status.json
jq -er --arg algorithm "$1" 'first(.algorithms[] | select(.algorithm == $algorithm)) |
	"base \(.base), \(.flows_ended) flows ended, exits \(.exits), outcomes \(.outcomes)",
	(select((.state == "attached" and .flows_ended > .flows_without_state and .state_failures == 0 and ([.outcomes[]] | add) > 0) | not) |
		error("not attached, or no verdict"))' /tmp/status.json >/tmp/status || status=$?
cat /tmp/status
exit "${status:-0}"
