#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# list.sh: a line in /tmp/algorithms for each: name, congestion control, and what its first parameter that is a number is set to,
# a limit that is not its default, or "-" where it has none.
set -e

onramp list --json >/tmp/list.json
jq -er '.algorithms[] | "\(.name) \(.congestion_control) \(first(.parameters[] | select(.choices == []) |
	"\(.name)=\(if "\(.default)" == "\(.maximum)" then .minimum else .maximum end)") // "-")"' /tmp/list.json >/tmp/algorithms
cut -d ' ' -f 1 /tmp/algorithms | tr '\n' ' '
echo
