#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# tune.sh ALGORITHM: its first parameter that is a number goes to a limit that is not its default, and is read back.
set -e

setting=$(jq -r --arg algorithm "$1" '.algorithms[] | select(.name == $algorithm) |
	first(.parameters[] | select(.choices == [])) |
	"\(.name)=\(if "\(.default)" == "\(.maximum)" then .minimum else .maximum end)"' /tmp/list.json)
if [ -z "$setting" ]; then
	onramp tune "$1" --json | jq -e '.parameters == {}' >/dev/null
	echo "has no parameters"
	exit
fi
onramp tune "$1" "$setting" --json >/tmp/tune.json
onramp tune "$1" --json | jq -e --arg name "${setting%=*}" --arg value "${setting#*=}" \
	'"\(.parameters[$name])" == $value' >/dev/null
echo "$setting"
