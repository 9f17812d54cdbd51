#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# tune.sh ALGORITHM SETTING: a parameter gets a value, and is read back; "-": there is none.
set -e

if [ "$2" = - ]; then
	onramp tune "$1" --json | grep -o '"parameters":{}'
	exit
fi
onramp tune "$1" "$2" --json >/tmp/tune.json
onramp tune "$1" --json | grep -Eo "\"${2%=*}\":${2#*=}[,}]"
