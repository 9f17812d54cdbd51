#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# programs.sh: a line for each operation of each algorithm with what this kernel makes of it, after one with the kernel's
# release and the version of the clang that made the objects. The host runs it for its own kernel, too.
#
#   PROGRAM <KERNEL> - - <release> <clang>
#   PROGRAM <KERNEL> <algorithm> <operation> <instructions verified> <bytes of machine code>
set -e

json=$(mktemp)
trap 'rm -f "$json"' EXIT
"${ONRAMP:-onramp}" lab bench programs --json >"$json"
jq -er --arg kernel "$KERNEL" '"PROGRAM \($kernel) - - \(.kernel) \(.clang)",
	(.programs[] | "PROGRAM \($kernel) \(.algorithm) \(.operation) \(.verified_instructions) \(.jited_bytes)")' "$json"
